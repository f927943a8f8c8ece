// pad.cpp - edges put on and taken away: Pad, CenterCropPad.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/same_value.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

/// What is put in front of an axis and behind it; less than nothing is cut off.
struct Edge {
  IntArg before = 0;
  IntArg after = 0;

  bool is_none() const { return before.is(0) && after.is(0); }
  bool is_number() const { return before.value == nullptr && after.value == nullptr; }
};
using Edges = std::vector<Edge>;  // one for each axis

/// Constant axes from the front, or all axes where none are given.
std::vector<int64_t> axes_or_all(const std::optional<std::vector<int64_t>>& given, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank && !given; ++axis) axes.push_back(axis);
  if (!given) return axes;
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (const int64_t axis : *given) {
    axes.push_back(NodeView::normalized(axis, rank));
    require(!seen[static_cast<size_t>(axes.back())], "axis {} is there twice", axis);
    seen[static_cast<size_t>(axes.back())] = true;
  }
  return axes;
}

// Pad

void infer_pad(InferNode& n) {
  if (const auto pads = n.find_dims("pads"); pads && !n.has("axes") && pads->size() % 2 == 0) {
    n.learn_rank("data", static_cast<int64_t>(pads->size() / 2));
  }
  const Shape* data = n.find_shape("data");
  if (data == nullptr) return n.set(0, n.dtype("data"), std::nullopt);
  Shape shape = *data;
  const auto pads = n.find_dims("pads");
  const auto given = n.find_const_ints("axes");
  if (!pads || (n.has("axes") && !given)) {
    for (Dim& dim : shape) dim = n.fresh();
    return n.set(0, n.dtype("data"), std::move(shape));
  }
  const auto axes = axes_or_all(given, static_cast<int64_t>(shape.size()));
  require(pads->size() == 2 * axes.size(), "{} pads for {} axes", pads->size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& dim = shape[static_cast<size_t>(axes[i])];
    dim = dim + (*pads)[i] + (*pads)[i + axes.size()];
    require(!dim.is_constant() || *dim.constant() >= 0, "more is cut off axis {} than there is", axes[i]);
  }
  n.set(0, n.dtype("data"), std::move(shape));
}

/// The rank that the input has, or that follows from a pad in front of and behind each axis.
int64_t padded_rank(const OnnxNode& n) {
  if (const auto rank = n.find_rank("data")) return *rank;
  const Shape* count = n.find_shape("pads");
  const bool is_known = count && count->size() == 1 && count->at(0).is_constant();
  if (n.has("axes") || !is_known || *count->at(0).constant() > 128) fail_unsupported("the rank of 'data' is not known");
  return *count->at(0).constant() / 2;
}

bool expand_pad(const NodeView& n, OnnxEdit& edit) {
  const Shape* count = n.find_shape("pads");
  if (!n.has("axes") && count && count->size() == 1 && count->at(0).is_constant()) return false;
  int64_t least = 1;
  for (const int64_t axis : n.find_const_ints("axes").value_or(Ints{}))
    least = std::max(least, ranks_with(axis, 1).front());
  return choose_rank(edit, n, {"data"}, from_to(least, std::max<int64_t>(least, 5)));
}

/// Pads for axes that only the run tells: each axis gets its own, of which most are zero.
Value* pads_of_all_axes(const OnnxNode& n, AtenBuilder& aten, int64_t rank) {
  Value* list = n.input("axes");
  if (n.dtype("axes") != DType::Int64) list = aten("to.dtype", list, DType::Int64);
  Value* at = aten("remainder.Scalar", list, rank);
  Value* both = aten("cat", std::vector<Value*>{at, aten("add.Scalar", at, rank)});
  Value* none = aten("zeros", IntArgs{2 * rank}, Kw{"dtype", DType::Int64});
  return aten("scatter.src", none, 0, both, n.input("pads"));
}

Edges edges_of(const OnnxNode& n, AtenBuilder& aten, int64_t rank) {
  Edges edges(static_cast<size_t>(rank));
  IntArgs pads;
  std::vector<int64_t> axes;
  if (n.has("axes") && !n.find_const_ints("axes")) {
    Value* all = aten("tonnx::tolist", pads_of_all_axes(n, aten, rank));
    for (int64_t i = 0; i < 2 * rank; ++i) pads.push_back(aten("tonnx::list_item", all, i));
    axes = axes_or_all(std::nullopt, rank);
  } else {
    axes = axes_or_all(n.find_const_ints("axes"), rank);
    pads = n.int_args("pads", 2 * axes.size());
  }
  require(pads.size() == 2 * axes.size(), "{} pads for {} axes", pads.size(), axes.size());
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const IntArg& pad : pads) {
    require(pad.value || (pad.number > -kMost && pad.number < kMost), "a pad of {}", pad.number);
  }
  for (size_t i = 0; i < axes.size(); ++i) edges[static_cast<size_t>(axes[i])] = {pads[i], pads[i + axes.size()]};
  return edges;
}

/// The pads as torch wants them, from the last axis to the first, in front and behind; `least` axes at least.
IntArgs from_last(const Edges& edges, size_t least = 1) {
  size_t count = edges.size();
  while (count > least && edges[edges.size() - count].is_none()) --count;
  IntArgs pads;
  for (size_t i = 0; i < count; ++i) {
    const Edge& edge = edges[edges.size() - 1 - i];
    pads.push_back(edge.before);
    pads.push_back(edge.after);
  }
  return pads;
}

Value* pad_with_value(const OnnxNode& n, AtenBuilder& aten, Value* x, const Arg& pads) {
  const TensorPtr constant = n.find_constant("constant_value");
  require(!constant || constant->count() == 1, "constant_value has {} elements", constant ? constant->count() : 0);
  const bool is_literal = constant && floats_of(*constant) && constant->dtype != DType::UInt64;
  if (!n.has("constant_value")) return aten("constant_pad_nd", x, pads);
  if (!is_literal) {
    Value* inside = aten("constant_pad_nd", aten("ones_like", x, Kw{"dtype", DType::Bool}), pads);
    return aten("where.self", inside, aten("constant_pad_nd", x, pads), n.input("constant_value"));
  }
  const double value = element_as_double(*constant, 0);
  if (constant->dtype == DType::Bool) return aten("constant_pad_nd", x, pads, value != 0);
  return is_float(constant->dtype) ? aten("constant_pad_nd", x, pads, value)
                                   : aten("constant_pad_nd", x, pads, element_as_int(*constant, 0));
}

/// Cuts off what negative pads say, and leaves the others. `first` is the dimension of the first edge.
Value* cropped(AtenBuilder& aten, Value* x, Edges& edges, Shape& sizes, int64_t first = 0) {
  for (size_t i = 0; i < edges.size(); ++i) {
    Edge& edge = edges[i];
    if (!edge.is_number() || (edge.before.number >= 0 && edge.after.number >= 0)) continue;
    const int64_t front = std::min<int64_t>(edge.before.number, 0), back = std::min<int64_t>(edge.after.number, 0);
    x = aten("slice.Tensor", x, first + static_cast<int64_t>(i), front == 0 ? Arg(nullptr) : Arg(-front),
             back == 0 ? Arg(nullptr) : Arg(back));
    edge.before.number -= front;
    edge.after.number -= back;
    sizes[i] = sizes[i] + Dim(front) + Dim(back);
  }
  return x;
}

/// Whether F.pad has the mode for such a tensor: it pads the last one to three axes behind one or two others.
bool has_kernel(const std::string& mode, DType dtype, const Edges& edges, const Shape& sizes) {
  const DTypeSet missing =
      kFloat8 | dtype_set(DType::Bool, DType::UInt16, DType::UInt32, DType::UInt64, DType::Float8E8M0);
  if (mode != "wrap" && contains(missing, dtype)) return false;
  if (edges.size() > 5 || from_last(edges).size() > 6) return false;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i].is_number()) return false;
    const int64_t most = std::max(edges[i].before.number, edges[i].after.number);
    const auto size = sizes[i].constant();
    if (size && (*size == 0 || (mode == "reflect" && most >= *size) || (mode == "wrap" && most > *size))) return false;
    if (!size && mode == "wrap" && most > 1) return false;  // F.pad goes around once, however small the axis is
  }
  return true;
}

/// Along each axis the places that its elements come from. `first` is the dimension of the first edge.
Value* pad_by_index(const std::string& mode, AtenBuilder& aten, Value* x, DType dtype, const Edges& edges,
                    const Shape& sizes, int64_t first = 0) {
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto dim = first + static_cast<int64_t>(i);
    if (edges[i].is_none()) continue;
    const IntArg size = sizes[i].is_constant() ? IntArg(*sizes[i].constant()) : aten.size(x, dim);
    const IntArg& before = edges[i].before;
    const IntArg start = before.value ? IntArg(aten("_operator::neg", before)) : IntArg(-before.number);
    Value* at = aten("arange.start_step", start, aten.add(size, edges[i].after));
    const IntArg last = aten.sub(size, 1);
    if (mode == "edge") {
      at = aten("clamp", at, 0, last);
    } else if (mode == "wrap") {
      at = aten("remainder.Scalar", at, size);
    } else {  // there and back again: the period is 2*size - 2
      at = aten("remainder.Scalar", at, aten.max(aten.mul(last, 2), 1));
      at = aten("rsub.Scalar", aten("abs", aten("sub.Scalar", at, last)), last);
    }
    x = selected_along(aten, x, dtype, dim, at);
  }
  return x;
}

/// Axes that are given, of a tensor whose rank only the run knows: they are the last ones while they are padded.
Value* pad_given_axes(const OnnxNode& n, AtenBuilder& aten, const std::vector<int64_t>& axes) {
  const std::string mode = n.s("mode");
  const auto count = static_cast<int64_t>(axes.size());
  std::vector<int64_t> last;
  for (int64_t dim = -count; dim < 0; ++dim) last.push_back(dim);
  for (const int64_t axis : axes) require(axis >= -kMaxRank && axis < kMaxRank, "axis {} is out of range", axis);
  const IntArgs pads = n.int_args("pads", 2 * axes.size());
  Edges edges;
  for (size_t i = 0; i < axes.size(); ++i) edges.push_back({pads[i], pads[i + axes.size()]});
  Value* x = axes == last ? n.input("data") : aten("movedim.intlist", n.input("data"), axes, last);
  if (mode == "constant") {
    x = pad_with_value(n, aten, x, from_last(edges));
  } else {
    Shape sizes(axes.size(), Dim::symbol("?"));
    x = cropped(aten, x, edges, sizes, -count);
    x = pad_by_index(mode, aten, x, n.dtype("data"), edges, sizes, -count);
  }
  return axes == last ? x : aten("movedim.intlist", x, last, axes);
}

Values lower_pad(const OnnxNode& n, AtenBuilder& aten) {
  const std::string mode = n.s("mode");
  require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap", "mode '{}' is not known", mode);
  Value* x = n.input("data");
  if (const auto axes = n.find_const_ints("axes"); axes && !axes->empty() && !n.find_rank("data")) {
    n.value("constant_value");
    return pad_given_axes(n, aten, *axes);
  }
  const int64_t rank = padded_rank(n);
  n.value("constant_value");  // it means nothing in the other modes
  const bool knows_axes = !n.has("axes") || n.find_const_ints("axes");
  if (mode == "constant" && !n.find_dims("pads") && (!n.has("axes") || !knows_axes)) {
    Value* pads = knows_axes ? n.input("pads") : pads_of_all_axes(n, aten, rank);
    Value* by_dim = aten("t", aten("flip", aten("reshape", pads, IntArgs{2, -1}), IntArgs{1}));
    return pad_with_value(n, aten, x, aten("tonnx::tolist", aten("flatten.using_ints", by_dim)));
  }
  Edges edges = edges_of(n, aten, rank);
  if (mode == "constant") {
    const bool none = std::all_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.is_none(); });
    return none ? x : pad_with_value(n, aten, x, from_last(edges));
  }
  const Shape* known = n.find_shape("data");
  Shape sizes = known ? *known : Shape(static_cast<size_t>(rank), Dim::symbol("?"));
  x = cropped(aten, x, edges, sizes);
  if (std::all_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.is_none(); })) return x;
  if (!has_kernel(mode, n.dtype("data"), edges, sizes))
    return pad_by_index(mode, aten, x, n.dtype("data"), edges, sizes);
  const IntArgs pads = from_last(edges, edges.size() > 2 ? edges.size() - 2 : 1);
  const char* name = mode == "edge" ? "replicate" : mode == "wrap" ? "circular" : "reflect";
  if (pads.size() / 2 < edges.size()) return aten("pad", x, pads, name);
  return aten("squeeze.dim", aten("pad", aten("unsqueeze", x, 0), pads, name), 0);
}

void up_pad_2(OnnxEdit& edit) {
  if (auto pads = edit.find_ints("paddings")) {
    edit.node().take_attribute("paddings");
    edit.node().set_attribute("pads", *pads, AttrType::Ints);
  }
}

void down_pad_2(OnnxEdit& edit) {
  if (auto pads = edit.find_ints("pads")) {
    edit.node().take_attribute("pads");
    edit.node().set_attribute("paddings", *pads, AttrType::Ints);
  }
}

void up_pad_11(OnnxEdit& edit) {
  attribute_to_input(edit, "pads", 1);
  const AttrValue value = edit.node().take_attribute("value");
  const auto* number = value.get<double>();
  require(value.is_none() || number != nullptr, "attribute 'value' is of the wrong type");
  if (number == nullptr || *number == 0) return;
  const Value* data = edit.node().input(0);
  if (data == nullptr || !is_float(data->type.dtype)) edit.cannot("the type of its input is not known");
  edit.node().set_input(2, edit.constant(make_scalar(data->type.dtype, *number), "constant_value"));
}

void down_pad_11(OnnxEdit& edit) {
  if (edit.node().input(2) != nullptr) {
    const auto value = edit.const_floats(2);
    if (!value || value->size() != 1)
      edit.cannot("input 'constant_value' is not constant, and is an attribute in the older opset");
    edit.node().set_attribute("value", (*value)[0]);
  }
  edit.node().resize_inputs(2);
  input_to_attribute(edit, "pads", 1);
}

void down_pad_18(OnnxEdit& edit) {
  if (edit.node().input(3) == nullptr) return;
  const auto axes = edit.const_ints(3), pads = edit.const_ints(1);
  const auto rank = edit.rank(0);
  if (!axes || !pads || !rank) edit.cannot("the older opset pads all axes, and they are not known");
  require(pads->size() == 2 * axes->size(), "{} pads for {} axes", pads->size(), axes->size());
  std::vector<int64_t> all(static_cast<size_t>(2 * *rank));
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t axis = NodeView::normalized((*axes)[i], *rank);
    all[static_cast<size_t>(axis)] = (*pads)[i];
    all[static_cast<size_t>(axis + *rank)] = (*pads)[i + axes->size()];
  }
  edit.node().set_input(1, edit.ints(std::move(all), "pads"));
  edit.node().resize_inputs(edit.node().input(2) != nullptr ? 3 : 2);
}

void down_pad_19(OnnxEdit& edit) {
  const Attribute* mode = edit.node().find_attribute("mode");
  const auto* text = mode ? mode->value.get<std::string>() : nullptr;
  if (text && *text == "wrap") edit.cannot("the older opset has no mode 'wrap'");
}

// CenterCropPad

void infer_center_crop_pad(InferNode& n) {
  if (const auto target = n.find_dims("shape"); target && !n.has("axes")) {
    n.learn_rank("input_data", static_cast<int64_t>(target->size()));
  }
  const Shape* data = n.find_shape("input_data");
  if (data == nullptr) return n.set(0, n.dtype("input_data"), std::nullopt);
  Shape shape = *data;
  const auto axes = axes_or_all(n.find_ints("axes"), static_cast<int64_t>(shape.size()));
  const auto target = n.find_dims("shape");
  require(!target || target->size() == axes.size(), "{} sizes for {} axes", target ? target->size() : 0, axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    require(!target || !(*target)[i].is_constant() || *(*target)[i].constant() >= 0, "a size is negative");
    shape[static_cast<size_t>(axes[i])] = target ? (*target)[i] : n.fresh();
  }
  n.set(0, n.dtype("input_data"), std::move(shape));
}

Values lower_center_crop_pad(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t rank = n.rank("input_data");
  const auto axes = axes_or_all(n.find_ints("axes"), rank);
  const IntArgs target = n.int_args("shape", axes.size());
  require(target.size() == axes.size(), "{} sizes for {} axes", target.size(), axes.size());
  Edges edges(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    // an odd pixel is put behind, and cut off behind, so that halves are rounded down for each
    const IntArg size = n.size("input_data", axes[i]);
    const IntArg more = aten.max(aten.sub(target[i], size), 0), less = aten.max(aten.sub(size, target[i]), 0);
    const IntArg before = aten.sub(aten.floor_div(more, 2), aten.floor_div(less, 2));
    edges[static_cast<size_t>(axes[i])] = {before, aten.sub(aten.sub(target[i], size), before)};
  }
  Value* x = n.input("input_data");
  const bool none = std::all_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.is_none(); });
  return none ? x : aten("constant_pad_nd", x, from_last(edges));
}

/// `F.pad(x, (1, 1, 0, 0), value=1.0)`
std::string emit_pad(const Emission& e) {
  const bool has_mode = e.signature().find_input("mode") >= 0 && e.has("mode");
  const std::string mode = has_mode ? ", mode=" + e.text("mode") : "";
  const std::string value = e.has("value") ? ", value=" + e.text("value") : "";
  const std::string pads = e.value("pad") ? e.text("pad") : python_tuple(e.items("pad"));
  return fmt::format("F.pad({}, {}{}{})", e.text("self"), pads, mode, value);
}

constexpr OpsetStep kPadHistory[] = {
    {.to = 2, .up = up_pad_2, .down = down_pad_2},
    {.to = 11, .up = up_pad_11, .down = down_pad_11, .adds = kAllInts},
    {.to = 13, .adds = kBFloat16 | dtype_set(DType::Bool, DType::Complex64, DType::Complex128, DType::String)},
    {.to = 18, .down = down_pad_18},
    {.to = 19, .down = down_pad_19},
    {.to = 21, .adds = kFloat8 | kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};

/// Pad by nothing
Value* same_of_pad(const Node& node) {
  return all_are(ints_of(node, node.find_attribute("paddings") ? "paddings" : "pads"), 0) ? node.input(0) : nullptr;
}

constexpr OnnxOp kPadOnnx[] = {
    {.sig = "Pad(T data, I pads, T? constant_value, Tind? axes, *, str mode=\"constant\") -> T output",
     .since = 1,
     .traits = kTakesStrings,
     .runtime = {kClippedInts | kBool},
     .history = kPadHistory,
     .infer = infer_pad,
     .eval = eval_pad,
     .same = same_of_pad,
     .lower = lower_pad,
     .expand = expand_pad},
    {.sig = "CenterCropPad(T input_data, Tind shape, *, ints? axes) -> T output_data",
     .since = 18,
     .infer = infer_center_crop_pad,
     .eval = eval_center_crop_pad,
     .lower = lower_center_crop_pad,
     .expand = expand_by_rank<"input_data", 1, 5>},
};

constexpr AtenOp kPadAten[] = {
    {.sig = "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
     .types = types_pad,
     .layout = Layout::Channels,
     .emit = emit_pad,
     .raise = raise_constant_pad,
     .raise_complex = raise_each_part},
    {.sig = "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
     .types = types_pad,
     .layout = Layout::Channels,
     .emit = emit_pad,
     .raise = raise_pad,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kPadOps;
constinit const OpFamily kPadOps{"pad", kPadOnnx, kPadAten};

}  // namespace tonnx
