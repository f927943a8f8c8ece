// eval_quantize.cpp - evaluation of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
#include <cmath>

#include "ops/eval_cast.h"
#include "ops/eval_map.h"

namespace tonnx {
namespace {

constexpr DTypeSet kQuantInts = dtype_set(DType::UInt8, DType::Int8, DType::UInt16, DType::Int16) | kInt4 | kInt2;
constexpr DTypeSet kQuantFloats = kFloat8 | kFloat4 | kFloat6;
constexpr DTypeSet kScales = dtype_set(DType::Float32, DType::Float64, DType::Float16, DType::BFloat16);

/// How scales and zero points lie along a tensor: one for all, one for each index of the axis, or one for each block.
struct Layout {
  int64_t outer = 1, size = 1, inner = 1;  // the tensor as three dimensions, the axis in the middle
  int64_t blocks = 1, block = 1;           // along the axis
  enum { PerTensor, PerAxis, Blocked } kind = PerTensor;
};

std::optional<Layout> find_layout(const NodeView& n, const Tensor& x, const Tensor& scale) {
  Layout layout;
  const int64_t block = n.i("block_size");
  if (scale.count() == 1 && block == 0 && scale.dims.size() <= 1) {
    layout.inner = x.count();
    return layout;
  }
  if (x.dims.empty() || block < 0) return std::nullopt;
  const auto axis = static_cast<size_t>(NodeView::normalized(n.i("axis"), static_cast<int64_t>(x.dims.size())));
  for (size_t i = 0; i < x.dims.size(); ++i)
    (i < axis ? layout.outer : i == axis ? layout.size : layout.inner) *= x.dims[i];
  if (block == 0) {
    layout.kind = Layout::PerAxis;
    return scale.dims == std::vector{layout.size} ? std::optional(layout) : std::nullopt;
  }
  layout.kind = Layout::Blocked;
  layout.block = block;
  layout.blocks = layout.size / block + (layout.size % block != 0 ? 1 : 0);
  std::vector<int64_t> dims = x.dims;
  dims[axis] = layout.blocks;
  return scale.dims == dims ? std::optional(layout) : std::nullopt;
}

/// Scales, or zero points, of the elements of one part of the outermost dimension.
void read_part(const Tensor& x, const Layout& layout, int64_t outer, std::vector<double>& into) {
  into.resize(static_cast<size_t>(layout.size * layout.inner));
  if (layout.kind == Layout::PerTensor) {
    std::fill(into.begin(), into.end(), element_as_double(x, 0));
    return;
  }
  for (int64_t i = 0; i < layout.size; ++i) {
    double* line = into.data() + i * layout.inner;
    if (layout.kind == Layout::PerAxis)
      std::fill(line, line + layout.inner, element_as_double(x, i));
    else
      load_numbers(x, (outer * layout.blocks + i / layout.block) * layout.inner, 1, layout.inner, line);
  }
}

/// Calls `use(x, scale, zero)` for each element, and stores what that gives as a code of the type. Nothing from `use`:
/// the whole is not evaluated.
template <class Use>
TensorPtr scaled(const Tensor& x, const Tensor& scale, const Tensor* zero, const Layout& layout, DType to,
                 const Use& use) {
  NewTensor result(to, x.dims);
  const int64_t part = layout.size * layout.inner;
  std::vector<double> numbers(static_cast<size_t>(part)), scales, zeros(static_cast<size_t>(part), 0.0);
  for (int64_t outer = 0; outer < layout.outer && part > 0; ++outer) {
    if (outer == 0 || layout.kind == Layout::Blocked) {
      read_part(scale, layout, outer, scales);
      if (zero != nullptr) read_part(*zero, layout, outer, zeros);
    }
    load_numbers(x, outer * part, 1, part, numbers.data());
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::optional<double> value = use(numbers[i], scales[i], zeros[i]);
      if (!value) return nullptr;
      numbers[i] = *value;
    }
    if (contains(kFloat8, to)) {  // given as codes
      for (size_t i = 0; i < numbers.size(); ++i)
        set_element_bits(to, result.data(), outer * part + static_cast<int64_t>(i), static_cast<uint64_t>(numbers[i]));
    } else {
      store_numbers(to, result.data(), outer * part, part, numbers.data());
    }
  }
  return result.done();
}

/// The quotient in the arithmetic of a float type.
double divided(double x, double scale, DType precision) {
  switch (precision) {
    case DType::Float64: return x / scale;
    case DType::Float32: return static_cast<float>(x) / static_cast<float>(scale);
    default: break;
  }
  const auto rounded = [&](double value) {
    uint16_t bits = 0;
    double result = 0;
    store_numbers(precision, reinterpret_cast<uint8_t*>(&bits), 0, 1, &value);
    const Tensor one{
        .dtype = precision,
        .dims = {1},
        .data = Bytes::own(std::vector<uint8_t>{static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)})};
    load_numbers(one, 0, 1, 1, &result);
    return result;
  };
  return rounded(rounded(x) / rounded(scale));
}

bool is_zero(const Tensor& x) {
  for (int64_t i = 0; i < x.count(); ++i) {
    if (element_as_double(x, i) != 0) return false;
  }
  return true;
}

TensorPtr find_zero(const NodeView& n, std::string_view name, const Tensor& scale, bool& fits) {
  const TensorPtr zero = n.has(name) ? n.find_constant(name) : nullptr;
  fits = !zero || zero->dims == scale.dims || (zero->count() == 1 && scale.count() == 1);
  return zero;
}

}  // namespace

Results eval_quantize(const NodeView& n) {
  const Tensor &x = *n.find_constant("x"), &scale = *n.find_constant("y_scale");
  const DType to = n.node().output(0)->type.dtype;
  const DType precision = n.i("precision") != 0 ? n.find_dtype("precision").value_or(DType::Undefined) : scale.dtype;
  bool fits = false;
  const TensorPtr zero = find_zero(n, "y_zero_point", scale, fits);
  const auto layout = find_layout(n, x, scale);
  if (!layout || !fits || !contains(kScales, precision) || !contains(kScales, scale.dtype) ||
      !contains(kScales | dtype_set(DType::Int32), x.dtype) || (zero && zero->dtype != to))
    return {};
  // which of two float types divides is said by `precision` alone
  if (n.i("precision") == 0 && is_float(x.dtype) && x.dtype != scale.dtype) return {};
  TensorPtr result;
  if (contains(kQuantInts, to)) {
    const int bits = info(to).bits;
    const double low = is_signed_int(to) ? -std::ldexp(1.0, bits - 1) : 0,
                 high = std::ldexp(1.0, is_signed_int(to) ? bits - 1 : bits) - 1;
    result =
        scaled(x, scale, zero.get(), *layout, to, [=](double value, double by, double add) -> std::optional<double> {
          const double quotient = divided(value, by, precision);
          if (std::isnan(quotient)) return std::nullopt;
          return std::clamp(std::nearbyint(quotient) + add, low, high);
        });
  } else if (contains(kQuantFloats, to) && (!zero || is_zero(*zero))) {
    const bool saturate = n.flag("saturate"), by_code = contains(kFloat8, to), has_zero = zero != nullptr;
    result = scaled(x, scale, nullptr, *layout, to, [=](double value, double by, double) -> std::optional<double> {
      const double quotient = divided(value, by, precision);
      if (by_code) return static_cast<double>(small_float_bits(to, quotient, saturate));
      return std::isnan(quotient) ? std::nullopt : std::optional(has_zero ? quotient + 0.0 : quotient);
    });
  }
  return result ? Results(result) : Results();
}

Results eval_dequantize(const NodeView& n) {
  const Tensor &x = *n.find_constant("x"), &scale = *n.find_constant("x_scale");
  const DType to = n.node().output(0)->type.dtype;
  bool fits = false;
  const TensorPtr zero = find_zero(n, "x_zero_point", scale, fits);
  const auto layout = find_layout(n, x, scale);
  if (!layout || !fits || !contains(kScales, to) || !contains(kScales | kFloat8E8M0, scale.dtype) ||
      !contains(kQuantInts | kQuantFloats | dtype_set(DType::Int32), x.dtype) || (zero && zero->dtype != x.dtype) ||
      (zero && is_float(x.dtype) && !is_zero(*zero)))
    return {};
  const bool in_double = to == DType::Float64;
  const auto times = [=](double value, double by, double less) -> std::optional<double> {
    if (in_double) return (value - less) * by;
    return static_cast<double>(static_cast<float>(value - less)) * static_cast<double>(static_cast<float>(by));
  };
  return scaled(x, scale, zero.get(), *layout, to, times);
}

Results eval_dynamic_quantize(const NodeView& n) {
  constexpr float kLevels = 255;
  const Tensor& x = *n.find_constant("x");
  if (x.dtype != DType::Float32 || x.count() == 0) return {};
  std::vector<float> numbers(static_cast<size_t>(x.count()));
  load_numbers(x, 0, 1, x.count(), numbers.data());
  float low = 0, high = 0;
  for (const float value : numbers) {
    if (!std::isfinite(value)) return {};
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float scale = (high - low) / kLevels;
  if (scale == 0 || !std::isfinite(scale)) return {};
  const float zero = std::nearbyint(std::clamp(0.0F - low / scale, 0.0F, kLevels));
  for (float& value : numbers) value = std::clamp(std::nearbyint(value / scale) + zero, 0.0F, kLevels);
  NewTensor result(DType::UInt8, x.dims);
  store_numbers(DType::UInt8, result.data(), 0, result.count(), numbers.data());
  Results results(result.done());
  results.push_back(tensor_of(DType::Float32, {}, {scale}));
  results.push_back(tensor_of(DType::UInt8, {}, {zero}));
  return results;
}

}  // namespace tonnx
