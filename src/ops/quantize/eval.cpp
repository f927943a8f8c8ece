// eval.cpp - evaluation of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
#include "ops/cast/eval.h"

#include <atomic>
#include <cmath>

#include "ops/frame/eval_map.h"
#include "ops/quantize/rows.h"

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

/// Scales, or zero points, of `count` elements from `first` on.
void read_spread(const Tensor& x, const Layout& layout, int64_t first, int64_t count, double* into) {
  if (layout.kind == Layout::PerTensor) return load_numbers(x, 0, 0, count, into);
  for (int64_t done = 0; done < count;) {
    const int64_t place = (first + done) % (layout.size * layout.inner),
                  outer = (first + done) / (layout.size * layout.inner);
    const int64_t index = place / layout.inner, at = place % layout.inner;
    const bool is_last = layout.inner == 1, per_axis = layout.kind == Layout::PerAxis;
    // a run has the same scale, or one scale after the other
    int64_t run = is_last ? layout.size - index : layout.inner - at;
    if (is_last && !per_axis) run = std::min(run, layout.block - index % layout.block);
    run = std::min(run, count - done);
    const int64_t from =
        per_axis ? index : (outer * layout.blocks + index / layout.block) * layout.inner + (is_last ? 0 : at);
    load_numbers(x, from, is_last == per_axis ? 1 : 0, run, into + done);
    done += run;
  }
}

/// `use(x, scale, zero)` of each element, as a number of the type, or a code of a float type of 8 bits. Null where that
/// is NaN once and the type has none.
template <class Use>
TensorPtr scaled(const Tensor& x, const Tensor& scale, const Tensor* zero, const Layout& layout, DType to,
                 const Use& use) {
  NewTensor result(to, x.dims);
  std::atomic<bool> is_number = true;
  in_parallel(result.count(), [&](int64_t begin, int64_t end) {
    double numbers[kBlock], scales[kBlock], zeros[kBlock] = {};
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      load_numbers(x, i, 1, count, numbers);
      read_spread(scale, layout, i, count, scales);
      if (zero != nullptr) read_spread(*zero, layout, i, count, zeros);
      for_block(count, [&](int64_t k) { numbers[k] = use(numbers[k], scales[k], zeros[k]); });
      if (contains(kFloat8, to)) {
        for (int64_t k = 0; k < count; ++k) result.data()[i + k] = static_cast<uint8_t>(numbers[k]);
        continue;
      }
      if (!contains(kScales, to)) {
        for (int64_t k = 0; k < count; ++k) {
          if (std::isnan(numbers[k])) is_number = false;
        }
      }
      store_numbers(to, result.data(), i, count, numbers);
    }
  });
  return is_number ? result.done() : nullptr;
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
    result = scaled(x, scale, zero.get(), *layout, to, [=](double value, double by, double add) {
      return std::clamp(std::nearbyint(divided(value, by, precision)) + add, low, high);
    });
  } else if (contains(kQuantFloats, to) && (!zero || is_zero(*zero))) {
    const bool saturate = n.flag("saturate"), by_code = contains(kFloat8, to), has_zero = zero != nullptr;
    result = scaled(x, scale, nullptr, *layout, to, [=](double value, double by, double) {
      const double quotient = divided(value, by, precision);
      if (by_code) return static_cast<double>(small_float_bits(to, quotient, saturate));
      return has_zero ? quotient + 0.0 : quotient;
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
  const auto times = [=](double value, double by, double less) {
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
