// resize.cpp - images made larger and smaller: Resize, and Upsample which it came from.
#include "ops/resize/resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/same_value.h"
#include "ops/resize/rows.h"

namespace tonnx {

ResizeRule resize_rule(const NodeView& n) {
  ResizeRule rule;
  const std::string mode = n.s("mode");
  require(mode == "nearest" || mode == "linear" || mode == "cubic", "'{}' is not a mode of Resize", mode);
  rule.kind = mode == "nearest"  ? ResizeRule::Kind::Nearest
              : mode == "linear" ? ResizeRule::Kind::Linear
                                 : ResizeRule::Kind::Cubic;
  rule.transform = n.s("coordinate_transformation_mode");
  constexpr std::string_view kTransforms[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                              "align_corners", "asymmetric",           "tf_crop_and_resize"};
  require(std::find(std::begin(kTransforms), std::end(kTransforms), rule.transform) != std::end(kTransforms),
          "'{}' is not a coordinate_transformation_mode", rule.transform);
  rule.rounding = n.s("nearest_mode");
  constexpr std::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  require(std::find(std::begin(kRoundings), std::end(kRoundings), rule.rounding) != std::end(kRoundings),
          "'{}' is not a nearest_mode", rule.rounding);
  rule.cubic_a = n.f("cubic_coeff_a");
  rule.exclude_outside = n.flag("exclude_outside");
  rule.antialias = n.flag("antialias") && rule.kind != ResizeRule::Kind::Nearest;
  rule.extrapolation = n.f("extrapolation_value");
  return rule;
}

bool is_given(const NodeView& n, std::string_view input) {
  if (!n.has(input)) return false;
  if (const TensorPtr constant = n.find_constant(input)) return constant->count() > 0;
  const Shape* shape = n.find_shape(input);
  return !(shape && shape->size() == 1 && shape->at(0).is(0));
}

namespace {

constexpr int64_t kMostKnown = int64_t{1} << 22;  // past so many numbers they are computed when the code runs

std::string aspect_policy(const NodeView& n) {
  std::string policy = n.s("keep_aspect_ratio_policy");
  require(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
          "'{}' is not a keep_aspect_ratio_policy", policy);
  return policy;
}

/// floor(in * scale), as an expression where the scale is a fraction that is easily written down.
std::optional<Dim> scaled(const Dim& in, double scale) {
  require(std::isfinite(scale) && scale > 0, "a scale of {}", scale);
  if (const auto size = in.constant()) {
    const float length = std::floor(static_cast<float>(*size) * static_cast<float>(scale));
    require(length < 9e18F, "a result of {} elements along one axis", length);
    return Dim(static_cast<int64_t>(length));
  }
  for (int64_t divisor = 1; divisor <= 64; divisor *= 2) {
    const double product = scale * static_cast<double>(divisor);
    if (product == std::floor(product) && product < 1e6)
      return floor_div(in * Dim(static_cast<int64_t>(product)), divisor);
  }
  return std::nullopt;
}

/// The elements of a list that is put together from parts, as far as they are known.
std::vector<std::optional<Dim>> known_parts(const Value& list, int depth = 0) {
  std::vector<std::optional<Dim>> result;
  if (const auto dims = find_dims(list)) {
    result.assign(dims->begin(), dims->end());
    return result;
  }
  const Node* maker = list.producer;
  if (maker && maker->domain.empty() && maker->op == "Concat" && depth < 8) {
    for (const Value* part : maker->inputs()) {
      if (part == nullptr) return {};
      const std::vector<std::optional<Dim>> elements = known_parts(*part, depth + 1);
      if (elements.empty()) return {};
      result.insert(result.end(), elements.begin(), elements.end());
    }
    return result;
  }
  const auto count = list.type.rank() == 1 ? list.type.shape->at(0).constant() : std::nullopt;
  if (count && *count <= 64) result.resize(static_cast<size_t>(*count));
  return result;
}

/// All axes get the scale that the size of one of them gives.
void keep_aspect(std::vector<ResizeAxis>& axes, bool larger) {
  std::optional<double> scale;
  for (const ResizeAxis& axis : axes) {
    const auto in = axis.in.constant(), out = axis.out ? axis.out->constant() : std::nullopt;
    if (!in || !out || *in == 0) {
      for (ResizeAxis& each : axes) each.out.reset();
      return;
    }
    const double each = static_cast<double>(*out) / static_cast<double>(*in);
    scale = !scale ? each : larger ? std::max(*scale, each) : std::min(*scale, each);
  }
  for (ResizeAxis& axis : axes) {
    axis.scale = scale;
    axis.out = Dim(static_cast<int64_t>(std::floor(*scale * static_cast<double>(*axis.in.constant()) + 0.5)));
  }
}

}  // namespace

std::vector<ResizeAxis> resize_axes(const NodeView& n) {
  const Shape& shape = *n.find_shape("X");
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> dims;
  if (const auto axes = n.find_ints("axes")) {
    for (const int64_t axis : *axes) dims.push_back(NodeView::normalized(axis, rank));
  } else {
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  }
  const bool by_size = is_given(n, "sizes"), by_scale = is_given(n, "scales");
  require(by_size != by_scale, "{} of 'scales' and 'sizes'", by_size ? "both" : "neither");
  const auto scales = by_scale ? n.find_const_floats("scales") : std::nullopt;
  const auto sizes = by_size ? known_parts(*n.value("sizes")) : std::vector<std::optional<Dim>>{};
  require(!scales || scales->size() == dims.size(), "{} scales for {} axes", scales ? scales->size() : 0, dims.size());
  require(sizes.empty() || sizes.size() == dims.size(), "{} sizes for {} axes", sizes.size(), dims.size());
  const std::string policy = aspect_policy(n);
  std::vector<ResizeAxis> result;
  for (size_t i = 0; i < dims.size(); ++i) {
    ResizeAxis axis{i, dims[i], shape[static_cast<size_t>(dims[i])], std::nullopt, std::nullopt};
    require(std::none_of(result.begin(), result.end(), [&](const ResizeAxis& other) { return other.dim == axis.dim; }),
            "axis {} is given twice", axis.dim);
    if (scales) {
      axis.scale = (*scales)[i];
      axis.out = scaled(axis.in, *axis.scale);
    }
    if (!sizes.empty()) axis.out = sizes[i];
    require(!axis.out || !axis.out->is_constant() || *axis.out->constant() >= 0, "a size of {}",
            axis.out ? axis.out->text() : "");
    result.push_back(std::move(axis));
  }
  if (by_size && policy != "stretch") keep_aspect(result, policy == "not_smaller");
  return result;
}

ResizeLowering::ResizeLowering(const OnnxNode& n, AtenBuilder& aten)
    : n(n), aten(aten), rule(resize_rule(n)), axes(), rank(n.rank("X")), dtype(n.dtype("X")) {
  axes = resize_axes(n);
  if (is_given(n, "sizes") && !keeps_aspect()) {
    for (ResizeAxis& axis : axes) {
      if (const auto declared = declared_size(axis); declared && !axis.out) axis.out = *declared;
    }
  }
  if (rule.kind != ResizeRule::Kind::Nearest && !is_float(dtype)) dtype = DType::Float32;
}

std::optional<int64_t> ResizeLowering::declared_size(const ResizeAxis& axis) const {
  const auto& shape = n.output_type().shape;
  return shape ? shape->at(static_cast<size_t>(axis.dim)).constant() : std::nullopt;
}

bool ResizeLowering::keeps_aspect() const { return is_given(n, "sizes") && aspect_policy(n) != "stretch"; }

std::optional<KnownAxis> ResizeLowering::known(const ResizeAxis& axis) const {
  const auto in = axis.in.constant(), out = axis.out ? axis.out->constant() : std::nullopt;
  if (!in || !out || (!axis.scale && is_given(n, "scales"))) return std::nullopt;
  if (*in == 0 || *in > kMostKnown || *out > kMostKnown) return std::nullopt;
  if (rule.kind != ResizeRule::Kind::Nearest && *in * *out > kMostKnown) return std::nullopt;
  const double scale = axis.scale ? *axis.scale : static_cast<double>(*out) / static_cast<double>(*in);
  KnownAxis known{*in, *out, scale, axis.scale ? scale * static_cast<double>(*in) : static_cast<double>(*out)};
  if (rule.crops()) {
    const auto roi = n.find_const_floats("roi");
    if (!roi) return std::nullopt;
    require(roi->size() == 2 * axes.size(), "{} numbers in 'roi' for {} axes", roi->size(), axes.size());
    known.start = (*roi)[axis.at];
    known.end = (*roi)[axis.at + axes.size()];
  }
  return known;
}

const IntArgs& ResizeLowering::sizes() {
  if (!sizes_) sizes_ = n.int_args("sizes", axes.size());
  return *sizes_;
}

std::optional<IntArg> ResizeLowering::find_out(const ResizeAxis& axis) {
  if (axis.out) return n.int_arg(*axis.out);
  if (const auto declared = declared_size(axis)) return *declared;
  if (keeps_aspect()) return std::nullopt;
  if (is_given(n, "sizes")) return sizes().at(axis.at);
  if (axis.scale) return aten("math::floor", aten("_operator::mul.float", n.size("X", axis.dim), *axis.scale));
  return std::nullopt;
}

namespace {

void infer_resize(InferNode& n) {
  if (!n.has("axes")) {
    for (const char* name : {"scales", "sizes"}) {
      const Shape* shape = is_given(n, name) ? n.find_shape(name) : nullptr;
      if (shape && shape->size() == 1) n.learn_rank("X", shape->front().constant());
    }
  }
  const Shape* shape = n.find_shape("X");
  if (shape == nullptr) return n.set(0, n.dtype("X"), std::nullopt);
  Shape result = *shape;
  for (const ResizeAxis& axis : resize_axes(n)) {
    const auto d = static_cast<size_t>(axis.dim);
    result[d] = axis.out ? *axis.out : n.declared_or_fresh(0, d, result.size(), *shape);
  }
  n.set(0, n.dtype("X"), std::move(result));
}

/// Whether the result differs from the input along the axis, as far as can be seen.
bool changes(ResizeLowering& lowering, const ResizeAxis& axis) {
  const auto known = lowering.known(axis);
  if (lowering.rule.crops() && !axis.in.is(1))
    return !known || known->in != known->out || known->start != 0 || known->end != 1;
  if (axis.scale) return *axis.scale != 1.0;
  if (axis.out && *axis.out == axis.in) return false;
  if (axis.in.is(1) && lowering.declared_size(axis) == 1) return false;
  if (axis.out && axis.in.is_constant()) return true;
  // No runtime does more than leave these two alone in the smooth modes.
  return lowering.rule.kind == ResizeRule::Kind::Nearest || lowering.rank < 4 || axis.dim > 1;
}

Values lower_resize(const OnnxNode& n, AtenBuilder& aten) {
  ResizeLowering lowering(n, aten);
  n.value("roi");
  n.value("scales");
  require(!lowering.rule.crops() || is_given(n, "roi"), "tf_crop_and_resize without 'roi'");
  std::vector<ResizeAxis> changed;
  for (const ResizeAxis& axis : lowering.axes) {
    require(!axis.in.is(0) || !axis.out || !axis.out->is_constant() || axis.out->is(0),
            "something is made from nothing");
    if (changes(lowering, axis)) changed.push_back(axis);
  }
  if (changed.empty()) return n.input("X");
  if (std::any_of(changed.begin(), changed.end(),
                  [](const ResizeAxis& axis) { return axis.in.is(0) || (axis.out && axis.out->is(0)); })) {
    IntArgs sizes;
    for (const Dim& dim : *n.output_type().shape) sizes.push_back(n.int_arg(dim));
    return aten("zeros", sizes, Kw{"dtype", n.dtype("X")});
  }
  Value* x = is_float(n.dtype("X")) || lowering.dtype == n.dtype("X") ? interpolated(lowering, changed) : nullptr;
  if (x != nullptr) return x;
  x = cast(aten, n.input("X"), n.dtype("X"), lowering.dtype);
  for (const ResizeAxis& axis : changed) {
    const auto known = lowering.known(axis);
    x = known ? resized_known(lowering, x, *known, axis.dim) : resized_at_run_time(lowering, x, axis);
  }
  return cast(aten, x, lowering.dtype, n.dtype("X"));
}

/// How it interpolates, from the name of the operator.
void add_mode(const Emission& e, std::vector<std::string>& arguments) {
  std::string mode = e.signature().name;  // _upsample_bilinear2d_aa
  mode = mode.substr(mode.find("upsample_") + 9);
  const bool antialias = mode.ends_with("_aa");
  mode = mode.substr(0, mode.find_first_of("123"));
  if (mode == "nearest_exact") mode = "nearest-exact";
  if (mode != "nearest") arguments.push_back(fmt::format("mode=\"{}\"", mode));
  if (!mode.starts_with("nearest") && e.flag("align_corners")) arguments.emplace_back("align_corners=True");
  if (antialias) arguments.emplace_back("antialias=True");
}

/// `F.interpolate(x, scale_factor=2, mode="bilinear")`
std::string emit_interpolate(const Emission& e) {
  std::vector<std::string> arguments{e.text("input")};
  if (e.has("output_size")) arguments.push_back("size=" + python_tuple(e.items("output_size")));
  if (e.has("scale_factors")) {
    CheckedList<std::string> factors;
    const auto* given = e.constant("scale_factors")->get<std::vector<double>>();
    require(given != nullptr, "argument 'scale_factors' is not a list of fixed numbers");
    for (const double factor : *given) {
      const bool whole = factor == std::floor(factor) && std::fabs(factor) < 1e6;
      factors.push_back(whole ? std::to_string(static_cast<int64_t>(factor)) : python_float(factor));
    }
    const bool equal =
        std::all_of(factors.begin(), factors.end(), [&](const std::string& f) { return f == factors[0]; });
    arguments.push_back("scale_factor=" + (equal ? factors[0] : python_tuple(factors)));
  }
  add_mode(e, arguments);
  return fmt::format("F.interpolate({})", joined(arguments));
}

void set_text(OnnxEdit& edit, std::string_view name, const char* value) {
  edit.node().set_attribute(name, std::string(value), AttrType::String);
}
std::string text_of(OnnxEdit& edit, std::string_view name, const char* otherwise) {
  const Attribute* given = edit.node().find_attribute(name);
  const auto* text = given ? given->value.get<std::string>() : nullptr;
  return text ? *text : otherwise;
}

void up_two_scales(OnnxEdit& edit) {
  std::vector<double> scales{1, 1};
  for (const char* name : {"height_scale", "width_scale"}) {
    const Attribute* given = edit.node().find_attribute(name);
    const auto* scale = given ? given->value.get<double>() : nullptr;
    require(scale != nullptr, "attribute '{}' is missing", name);
    scales.push_back(*scale);
    drop_attribute(edit, name);
  }
  edit.node().set_attribute("scales", scales, AttrType::Floats);
}

void down_two_scales(OnnxEdit& edit) {
  const Attribute* given = edit.node().find_attribute("scales");
  const auto* found = given ? given->value.get<std::vector<double>>() : nullptr;
  if (!found || found->size() != 4 || (*found)[0] != 1 || (*found)[1] != 1)
    edit.cannot("opset 6 scales height and width only");
  const std::vector<double> scales = *found;
  drop_attribute(edit, "scales");
  edit.node().set_attribute("height_scale", scales[2], AttrType::Float);
  edit.node().set_attribute("width_scale", scales[3], AttrType::Float);
}

void up_scales_to_input(OnnxEdit& edit) {
  const Attribute* given = edit.node().find_attribute("scales");
  const auto* found = given ? given->value.get<std::vector<double>>() : nullptr;
  require(found != nullptr, "attribute 'scales' is missing");
  const std::vector<double> scales = *found;
  drop_attribute(edit, "scales");
  edit.node().set_input(
      1, edit.constant(make_floats(DType::Float32, {static_cast<int64_t>(scales.size())}, scales), "scales"));
}

void down_scales_to_attribute(OnnxEdit& edit) {
  const auto scales = edit.const_floats(1);
  if (!scales) edit.cannot("its scales are not constant, and are an attribute in opset 8");
  edit.node().resize_inputs(1);
  edit.node().set_attribute("scales", *scales, AttrType::Floats);
}

void up_to_resize(OnnxEdit& edit) {
  edit.node().op = "Resize";
  edit.node().mark_changed();
}

/// Opset 10 counts coordinates from the corner. To the nearest it goes down, or, where the result is smaller, up.
void up_from_corner(OnnxEdit& edit) {
  Node& node = edit.node();
  const bool nearest = text_of(edit, "mode", "nearest") == "nearest";
  const auto scales = edit.const_floats(1);
  bool shrinks = false, grows = false;
  for (const double scale : scales.value_or(std::vector<double>{})) {
    shrinks = shrinks || scale < 1;
    grows = grows || scale > 1;
  }
  const auto rank = static_cast<int64_t>(scales ? scales->size() : 0);
  const auto part = [&](bool smaller) {
    std::vector<double> kept;
    for (const double scale : *scales) kept.push_back((scale < 1) == smaller ? scale : 1.0);
    return edit.constant(make_floats(DType::Float32, {rank}, kept), "scales");
  };
  Value* scale = node.input(1);
  Value* no_roi = edit.constant(make_floats(DType::Float32, {0}, {}), "roi");
  if (nearest && shrinks && grows) {  // one after the other, for they are rounded differently
    const auto text = [](const char* name, const char* value) {
      return Attribute{name, std::string(value), AttrType::String, {}, {}};
    };
    node.set_input(0,
                   edit.before("Resize", {node.input(0), no_roi, part(true)},
                               {text("coordinate_transformation_mode", "asymmetric"), text("nearest_mode", "ceil")}));
    scale = part(false);
  }
  set_text(edit, "coordinate_transformation_mode", "asymmetric");
  if (nearest) set_text(edit, "nearest_mode", shrinks && !grows ? "ceil" : "floor");
  node.set_input(2, scale);
  node.set_input(1, no_roi);
}

void down_to_corner(OnnxEdit& edit) {
  Node& node = edit.node();
  const std::string mode = text_of(edit, "mode", "nearest");
  if (mode == "cubic") edit.cannot("opset 10 has no cubic mode");
  if (text_of(edit, "coordinate_transformation_mode", "half_pixel") != "asymmetric") {
    edit.cannot("opset 10 has no coordinate_transformation_mode but asymmetric");
  }
  if (node.input(3) != nullptr) edit.cannot("opset 10 has no sizes");
  const auto scales = edit.const_floats(2);
  const bool grows = scales && std::all_of(scales->begin(), scales->end(), [](double scale) { return scale >= 1; });
  if (mode == "nearest" && (!grows || text_of(edit, "nearest_mode", "round_prefer_floor") != "floor")) {
    edit.cannot("opset 10 rounds to the nearest in another way");
  }
  for (const char* name :
       {"coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value"}) {
    drop_attribute(edit, name);
  }
  node.set_input(1, node.input(2));
  node.resize_inputs(2);
}

/// In opset 11 `roi` and `scales` are always there, and may be empty.
void up_drop_empty(OnnxEdit& edit) {
  Node& node = edit.node();
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (node.input(i) && node.input(i)->constant && node.input(i)->constant->count() == 0) node.set_input(i, nullptr);
  }
}
void down_add_empty(OnnxEdit& edit) {
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!edit.node().input(i))
      edit.node().set_input(i, edit.constant(make_floats(DType::Float32, {0}, {}), i == 1 ? "roi" : "scales"));
  }
}

void down_stretch_all(OnnxEdit& edit) {
  require_default(edit, "antialias", 0);
  if (text_of(edit, "keep_aspect_ratio_policy", "stretch") != "stretch")
    edit.cannot("opset 17 has no keep_aspect_ratio_policy");
  if (edit.node().find_attribute("axes") != nullptr) edit.cannot("opset 17 has no axes");
  drop_attribute(edit, "keep_aspect_ratio_policy");
}
void down_not_symmetric(OnnxEdit& edit) {
  if (text_of(edit, "coordinate_transformation_mode", "half_pixel") == "half_pixel_symmetric") {
    edit.cannot("opset 18 has no half_pixel_symmetric");
  }
}

constexpr OpsetStep kUpsampleHistory[] = {
    {.to = 7,
     .up = up_two_scales,
     .down = down_two_scales,
     .adds = kSmallInts | dtype_set(DType::UInt32, DType::UInt64, DType::Complex64, DType::Complex128, DType::String)},
    {.to = 9, .up = up_scales_to_input, .down = down_scales_to_attribute},
    {.to = 10, .up = up_to_resize},
};
constexpr OpsetStep kResizeHistory[] = {
    {.to = 11, .up = up_from_corner, .down = down_to_corner},
    {.to = 13, .up = up_drop_empty, .down = down_add_empty, .adds = kBFloat16},
    {.to = 18, .down = down_stretch_all},
    {.to = 19, .down = down_not_symmetric},
};

/// Resize and Upsample by 1, where coordinates stay
Value* same_of_resize(const Node& node) {
  const auto mode = text_of(node, "coordinate_transformation_mode").value_or("half_pixel");
  if (mode == "tf_crop_and_resize" || mode == "tf_half_pixel_for_nn") return nullptr;
  if (text_of(node, "keep_aspect_ratio_policy").value_or("stretch") != "stretch" || !keeps_type(node)) return nullptr;
  const bool has_no_roi = node.version < 11 && node.input(1) && node.input(1)->constant;  // Resize-10
  const auto scales = has_no_roi ? floats_of(*node.input(1)->constant) : floats_of(node, "scales");
  if (scales && !scales->empty())
    return std::all_of(scales->begin(), scales->end(), [](double scale) { return scale == 1; }) ? node.input(0)
                                                                                                : nullptr;
  return has(node, "sizes") ? node.input(0) : nullptr;
}

constexpr OnnxOp kResizeOnnx[] = {
    {.sig = "Upsample(T X, tensor(float) scales, *, str mode=\"nearest\") -> T Y",
     .since = 1,
     .history = kUpsampleHistory,
     .same = same_of_resize,
     .note = "became Resize",
     .until = 10},
    {.sig = "Resize(T1 X, T2? roi, tensor(float)? scales, tensor(int64)? sizes, *, int antialias=0, ints? axes, "
            "str coordinate_transformation_mode=\"half_pixel\", float cubic_coeff_a=-0.75, int exclude_outside=0, "
            "float extrapolation_value=0.0, str keep_aspect_ratio_policy=\"stretch\", str mode=\"nearest\", "
            "str nearest_mode=\"round_prefer_floor\") -> T1 Y",
     .since = 10,
     .traits = kTakesStrings,
     .history = kResizeHistory,
     .infer = infer_resize,
     .open = open_resize,
     .eval = eval_resize,
     .same = same_of_resize,
     .lower = lower_resize,
     .note = "align_corners with a scale that gives no whole size follows the standard's own test data",
     .expand = expand_by_rank<"X", 2, 5>},
};

#define NEAREST(op) "aten::" op ".vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"
#define SMOOTH(op) \
  "aten::" op ".vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor"
constexpr AtenOp kResizeAten[] = {
    {.sig = NEAREST("upsample_nearest1d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = NEAREST("upsample_nearest2d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = NEAREST("upsample_nearest3d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = NEAREST("_upsample_nearest_exact1d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = NEAREST("_upsample_nearest_exact2d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = NEAREST("_upsample_nearest_exact3d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = SMOOTH("upsample_linear1d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = SMOOTH("upsample_bilinear2d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = SMOOTH("upsample_trilinear3d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = SMOOTH("upsample_bicubic2d"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = SMOOTH("_upsample_bilinear2d_aa"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
    {.sig = SMOOTH("_upsample_bicubic2d_aa"),
     .types = types_upsample,
     .layout = Layout::Channels,
     .emit = emit_interpolate,
     .raise = raise_upsample},
};
#undef NEAREST
#undef SMOOTH

}  // namespace

std::string emit_upsample(const Emission& e) {
  std::vector<std::string> arguments{e.text("self")}, factors;
  for (const char* name : {"scales", "scales_d", "scales_h", "scales_w"})
    if (e.signature().find_input(name) >= 0 && e.has(name)) factors.push_back(fmt::format("{}={}", name, e.text(name)));
  if (factors.empty()) {
    arguments.push_back("size=" + python_tuple(e.items("output_size")));
    add_mode(e, arguments);
    return fmt::format("F.interpolate({})", joined(arguments));
  }
  arguments.push_back(fmt::format("[{}]", joined(e.items("output_size"))));
  if (e.signature().find_input("align_corners") >= 0) arguments.push_back(e.flag("align_corners") ? "True" : "False");
  arguments.insert(arguments.end(), factors.begin(), factors.end());
  return fmt::format("torch.ops.aten.{}({})", e.signature().name, joined(arguments));
}

extern const OpFamily kResizeOps;
constinit const OpFamily kResizeOps{"resize", kResizeOnnx, kResizeAten};

}  // namespace tonnx
