// raise.cpp - PyTorch's interpolation of images as ONNX.
#include <cmath>

#include "base/budget.h"
#include "base/whole.h"
#include "ops/resize/resize.h"
#include "ops/resize/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// A mode of F.interpolate, by the name of the operator: `_upsample_bicubic2d_aa`.
struct Mode {
  bool is_nearest = false, is_exact = false, is_cubic = false, antialias = false;
};

Mode mode_of(const AtenNode& n) {
  const std::string& name = n.node().op.str();
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return {has("nearest"), has("nearest_exact"), has("cubic"), has("_aa")};
}

const char* input_name(const AtenNode& n) { return n.node().overload == "vec" ? "input" : "self"; }

/// The factors that are given; coordinates follow them, and not the ratio of the sizes.
std::vector<std::optional<double>> factors_of(const AtenNode& n, int64_t spatial) {
  std::vector<std::optional<double>> factors(static_cast<size_t>(spatial));
  n.ignore({"output_size"});
  if (n.node().overload == "vec") {
    const auto given = n.find_floats("scale_factors");
    if (!given) return factors;
    require(given->size() == factors.size(), "{} factors are given for {} dimensions", given->size(), spatial);
    factors.assign(given->begin(), given->end());
    return factors;
  }
  const std::vector<const char*> names =
      spatial == 1 ? std::vector<const char*>{"scales"} : std::vector<const char*>{"scales_d", "scales_h", "scales_w"};
  for (size_t i = 0; i < factors.size(); ++i) factors[i] = n.find_f(names[names.size() - factors.size() + i]);
  return factors;
}

/// One spatial dimension. `factor` is that of the result to the input.
struct ResizedAxis {
  std::optional<int64_t> in, out;
  std::optional<double> factor;
};

/// A factor of 32 bits from which a runtime computes just that size.
std::optional<float> scale_for(const ResizedAxis& axis) {
  if (!axis.in || !axis.out || *axis.in == 0) {
    return axis.factor ? std::optional(static_cast<float>(*axis.factor)) : std::nullopt;
  }
  const auto in = static_cast<float>(*axis.in);
  float scale = axis.factor ? static_cast<float>(*axis.factor) : static_cast<float>(*axis.out) / in;
  for (int tries = 0; tries < 4; ++tries) {
    // some compute it in 32 bits, and some in 64
    const int64_t size = whole(std::floor(in * scale));
    const int64_t exact = whole(std::floor(static_cast<double>(*axis.in) * static_cast<double>(scale)));
    if (size == *axis.out && exact == *axis.out) return scale;
    scale = std::nextafter(scale, std::min(size, exact) < *axis.out ? 1e30F : 0.0F);
  }
  return std::nullopt;
}

/// Where PyTorch takes each element from.
std::vector<int64_t> nearest_in_pytorch(const ResizedAxis& axis, bool is_exact) {
  const float ratio = axis.factor && *axis.factor > 0 ? static_cast<float>(1.0 / *axis.factor)
                                                      : static_cast<float>(*axis.in) / static_cast<float>(*axis.out);
  std::vector<int64_t> sources;
  sources.reserve(room_for<int64_t>({*axis.out}));
  for (int64_t i = 0; i < *axis.out; ++i) {
    const auto x = static_cast<float>(i);
    int64_t at = whole(std::floor(is_exact ? (x + 0.5F) * ratio : x * ratio));
    if (!is_exact && *axis.out == *axis.in) at = i;
    if (!is_exact && *axis.out % 2 == 0 && *axis.out / 2 == *axis.in) at = i / 2;
    sources.push_back(std::min(at, *axis.in - 1));
  }
  return sources;
}

/// The same in a runtime that is given this scale.
std::vector<int64_t> nearest_in_runtime(const ResizedAxis& axis, float scale, bool is_exact) {
  std::vector<int64_t> sources;
  sources.reserve(room_for<int64_t>({*axis.out}));
  for (int64_t i = 0; i < *axis.out; ++i) {
    const auto x = static_cast<float>(i);
    const float at = is_exact ? std::floor((x + 0.5F) / scale - 0.5F + 0.5F) : std::floor(x / scale);
    sources.push_back(std::clamp<int64_t>(whole(at), 0, *axis.in - 1));
  }
  return sources;
}

/// The nearest elements by their numbers, where a Resize would round otherwise, or does not take the type.
Value* find_picked(const Mode& mode, OnnxBuilder& onnx, Value* x, const std::vector<ResizedAxis>& axes) {
  if (!mode.is_nearest) return nullptr;
  const DType dtype = onnx.dtype(x);
  bool differs = dtype != DType::Float32 && dtype != DType::Float16 && dtype != DType::UInt8;
  for (const ResizedAxis& axis : axes) {
    if (!axis.in || !axis.out || *axis.in == 0) return nullptr;
    const auto scale = scale_for(axis);
    differs =
        differs || !scale || nearest_in_pytorch(axis, mode.is_exact) != nearest_in_runtime(axis, *scale, mode.is_exact);
  }
  if (!differs) return nullptr;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::vector<int64_t> sources = nearest_in_pytorch(axes[i], mode.is_exact);
    x = onnx.gather(x, onnx.ints(sources), static_cast<int64_t>(i) + 2);
  }
  return x;
}

std::vector<Attribute> resize_attributes(const AtenNode& n, const Mode& mode) {
  std::vector<Attribute> attributes;
  const auto text = [&](const char* name, const char* value) { attributes.push_back(attr(name, std::string(value))); };
  if (mode.is_nearest) {
    text("mode", "nearest");
    text("coordinate_transformation_mode", mode.is_exact ? "half_pixel" : "asymmetric");
    text("nearest_mode", mode.is_exact ? "round_prefer_ceil" : "floor");
    return attributes;
  }
  text("mode", mode.is_cubic ? "cubic" : "linear");
  text("coordinate_transformation_mode", n.flag("align_corners") ? "align_corners" : "half_pixel");
  if (mode.is_cubic) attributes.push_back(attr("cubic_coeff_a", mode.antialias ? -0.5 : -0.75));
  if (mode.antialias) {
    attributes.push_back(attr("antialias", int64_t{1}));
    attributes.push_back(attr("exclude_outside", int64_t{1}));
  }
  return attributes;
}

}  // namespace

Values raise_upsample(const AtenNode& n, OnnxBuilder& onnx) {
  const char* name = input_name(n);
  const int64_t spatial = spatial_of(n);
  require(n.rank(name) == spatial + 2 && n.output_shape().size() == static_cast<size_t>(spatial + 2),
          "an image of {} dimensions, and a result of {}", n.rank(name), n.output_shape().size());
  const Mode mode = mode_of(n);
  Value* x = n.input(name);
  const DType dtype = onnx.dtype(x);
  if (!mode.is_nearest && !is_float(dtype)) n.cannot("a smooth interpolation of {}", name_of(dtype));
  const auto factors = factors_of(n, spatial);
  const bool aligns = !mode.is_nearest && n.flag("align_corners");
  if (aligns && mode.antialias) n.cannot("antialias with aligned corners");
  std::vector<ResizedAxis> axes;
  bool by_scale = true;
  for (size_t i = 0; i < factors.size(); ++i) {
    axes.push_back({n.shape(name)[i + 2].constant(), n.output_shape()[i + 2].constant(), factors[i]});
    by_scale = by_scale && (factors[i] || (axes[i].in && axes[i].out)) && scale_for(axes[i]);
  }
  if (Value* picked = find_picked(mode, onnx, x, axes)) return picked;
  const bool has_factors = std::any_of(factors.begin(), factors.end(), [](const auto& f) { return f.has_value(); });
  const bool is_static =
      std::all_of(n.output_shape().begin(), n.output_shape().end(), [](const Dim& size) { return size.is_constant(); });
  if (by_scale && (has_factors || !is_static)) {
    std::vector<double> scales{1, 1};
    for (const ResizedAxis& axis : axes) scales.push_back(*scale_for(axis));
    Value* list = onnx.numbers(DType::Float32, {spatial + 2}, scales);
    return onnx("Resize", {x, nullptr, list}, resize_attributes(n, mode));
  }
  if (has_factors && !aligns) n.cannot("a factor that does not give the size of the result");
  if (!n.has("output_size"))
    return onnx("Resize", {x, nullptr, nullptr, onnx.list(onnx.ints_of(n.output_shape()))}, resize_attributes(n, mode));
  IntArgs sizes = onnx.ints_of(Shape(n.output_shape().begin(), n.output_shape().begin() + 2));
  for (const IntArg& size : n.int_args("output_size")) sizes.push_back(size);
  return onnx("Resize", {x, nullptr, nullptr, onnx.list(sizes)}, resize_attributes(n, mode));
}

namespace {

#define NEAREST(op, n, scales) "aten::" op "(Tensor self, SymInt[" n "] output_size, " scales ") -> Tensor"
#define SMOOTH(op, n, scales) \
  "aten::" op "(Tensor self, SymInt[" n "] output_size, bool align_corners, " scales ") -> Tensor"
#define ONE "float? scales=None"
#define TWO "float? scales_h=None, float? scales_w=None"
#define THREE "float? scales_d=None, float? scales_h=None, float? scales_w=None"
#define ROW(text) \
  { .sig = text, .types = types_upsample, .layout = Layout::Channels, .emit = emit_upsample, .raise = raise_upsample }

constexpr AtenOp kAtenResizeAten[] = {
    ROW(NEAREST("upsample_nearest1d", "1", ONE)),        ROW(NEAREST("upsample_nearest2d", "2", TWO)),
    ROW(NEAREST("upsample_nearest3d", "3", THREE)),      ROW(NEAREST("_upsample_nearest_exact1d", "1", ONE)),
    ROW(NEAREST("_upsample_nearest_exact2d", "2", TWO)), ROW(NEAREST("_upsample_nearest_exact3d", "3", THREE)),
    ROW(SMOOTH("upsample_linear1d", "1", ONE)),          ROW(SMOOTH("upsample_bilinear2d", "2", TWO)),
    ROW(SMOOTH("upsample_trilinear3d", "3", THREE)),     ROW(SMOOTH("upsample_bicubic2d", "2", TWO)),
    ROW(SMOOTH("_upsample_bilinear2d_aa", "2", TWO)),    ROW(SMOOTH("_upsample_bicubic2d_aa", "2", TWO)),
};

#undef ROW
#undef THREE
#undef TWO
#undef ONE
#undef SMOOTH
#undef NEAREST

}  // namespace

extern const OpFamily kAtenResizeOps;
constinit const OpFamily kAtenResizeOps{"aten_resize", {}, kAtenResizeAten};

}  // namespace tonnx
