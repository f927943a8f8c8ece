// tensor.cpp - reading and making elements of constant tensors.
#include "ir/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/budget.h"
#include "base/computed.h"
#include "base/error.h"

namespace tonnx {
namespace {

constexpr int64_t kMaxDense = int64_t{1} << 28;  // elements of a sparse tensor that is made dense

static_assert(std::endian::native == std::endian::little, "tensors are used as they lie in the file");

constexpr int kE8M0Bias = 127;
constexpr int kE8M0NaN = 255;

/// The layout of a float type of 16 bits or less.
struct MiniFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  enum Special : uint8_t { Ieee, Fn, Fnuz, FiniteOnly } special;
};

std::optional<MiniFloat> mini_float(DType dtype) {
  switch (dtype) {
    case DType::Float16: return MiniFloat{5, 10, 15, MiniFloat::Ieee};
    case DType::BFloat16: return MiniFloat{8, 7, 127, MiniFloat::Ieee};
    case DType::Float8E5M2: return MiniFloat{5, 2, 15, MiniFloat::Ieee};
    case DType::Float8E4M3FN: return MiniFloat{4, 3, 7, MiniFloat::Fn};
    case DType::Float8E4M3FNUZ: return MiniFloat{4, 3, 8, MiniFloat::Fnuz};
    case DType::Float8E5M2FNUZ: return MiniFloat{5, 2, 16, MiniFloat::Fnuz};
    case DType::Float4E2M1: return MiniFloat{2, 1, 1, MiniFloat::FiniteOnly};
    case DType::Float6E2M3: return MiniFloat{2, 3, 1, MiniFloat::FiniteOnly};
    case DType::Float6E3M2: return MiniFloat{3, 2, 3, MiniFloat::FiniteOnly};
    default: return std::nullopt;
  }
}

double decode(const MiniFloat& f, uint32_t bits) {
  const uint32_t mantissa_mask = (1U << f.mantissa_bits) - 1;
  const uint32_t exponent_mask = (1U << f.exponent_bits) - 1;
  const bool negative = (bits >> (f.mantissa_bits + f.exponent_bits)) & 1U;
  const uint32_t exponent = (bits >> f.mantissa_bits) & exponent_mask;
  const uint32_t mantissa = bits & mantissa_mask;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (f.special == MiniFloat::Fnuz && negative && exponent == 0 && mantissa == 0) return nan;
  if (f.special == MiniFloat::Fn && exponent == exponent_mask && mantissa == mantissa_mask) return nan;
  if (f.special == MiniFloat::Ieee && exponent == exponent_mask) {
    if (mantissa != 0) return nan;
    return negative ? -HUGE_VAL : HUGE_VAL;
  }
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits;
  const double magnitude =
      std::ldexp(mantissa + (exponent == 0 ? 0.0 : static_cast<double>(1U << f.mantissa_bits)), scale);
  return negative ? -magnitude : magnitude;
}

/// To nearest, ties to even; past the largest value: infinity in the IEEE types, the largest value elsewhere.
uint32_t encode(const MiniFloat& f, double value) {
  const uint32_t sign = std::signbit(value) ? 1U << (f.mantissa_bits + f.exponent_bits) : 0;
  const uint32_t exponent_mask = (1U << f.exponent_bits) - 1;
  const uint32_t infinity = exponent_mask << f.mantissa_bits;
  if (std::isnan(value)) {
    if (f.special == MiniFloat::Fnuz) return 1U << (f.mantissa_bits + f.exponent_bits);
    return f.special == MiniFloat::Ieee ? infinity | (1U << (f.mantissa_bits - 1))
                                        : infinity | ((1U << f.mantissa_bits) - 1);
  }
  const double magnitude = std::fabs(value);
  uint32_t largest = infinity - 1;  // IEEE: the code just below infinity
  if (f.special == MiniFloat::Fn) largest = (infinity | ((1U << f.mantissa_bits) - 1)) - 1;
  if (f.special == MiniFloat::Fnuz || f.special == MiniFloat::FiniteOnly)
    largest = infinity | ((1U << f.mantissa_bits) - 1);
  uint32_t code = 0;
  if (std::isinf(magnitude)) {
    code = f.special == MiniFloat::Ieee ? infinity : largest;
  } else if (magnitude > 0) {
    int exponent = std::ilogb(magnitude) + f.bias;
    if (exponent < 1) exponent = 1;
    const double scaled = std::ldexp(magnitude, f.mantissa_bits + f.bias - exponent);  // mantissa with its hidden bit
    const auto rounded = static_cast<uint64_t>(std::nearbyint(scaled));
    const uint64_t hidden = 1ULL << f.mantissa_bits;
    const uint64_t wide =
        rounded < hidden ? rounded : (static_cast<uint64_t>(exponent - 1) << f.mantissa_bits) + rounded;
    code = wide > largest ? (f.special == MiniFloat::Ieee ? infinity : largest) : static_cast<uint32_t>(wide);
  }
  if (f.special == MiniFloat::Fnuz && code == 0) return 0;  // no negative zero
  return sign | code;
}

template <class T>
T load(const Tensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

/// Calls `use` with the element in its own C++ type.
template <class Use>
auto with_element(const Tensor& t, int64_t i, Use&& use) {
  switch (t.dtype) {
    case DType::Float32: return use(load<float>(t, i));
    case DType::Float64: return use(load<double>(t, i));
    case DType::UInt8:
    case DType::Bool: return use(load<uint8_t>(t, i));
    case DType::Int8: return use(load<int8_t>(t, i));
    case DType::UInt16: return use(load<uint16_t>(t, i));
    case DType::Int16: return use(load<int16_t>(t, i));
    case DType::Int32: return use(load<int32_t>(t, i));
    case DType::Int64: return use(load<int64_t>(t, i));
    case DType::UInt32: return use(load<uint32_t>(t, i));
    case DType::UInt64: return use(load<uint64_t>(t, i));
    case DType::UInt4:
    case DType::UInt2: return use(static_cast<uint8_t>(element_bits(t, i)));
    case DType::Int4:
    case DType::Int2: {
      const int bits = info(t.dtype).bits;
      const auto value = static_cast<int>(element_bits(t, i));
      return use(static_cast<int8_t>(value >= (1 << (bits - 1)) ? value - (1 << bits) : value));
    }
    case DType::Float8E8M0: {
      const uint8_t exponent = load<uint8_t>(t, i);
      return use(exponent == kE8M0NaN ? std::numeric_limits<double>::quiet_NaN()
                                      : std::ldexp(1.0, exponent - kE8M0Bias));
    }
    default: break;
  }
  const auto mini = mini_float(t.dtype);
  require(mini.has_value(), "a tensor of {} has no numbers", name_of(t.dtype));
  return use(decode(*mini, static_cast<uint32_t>(element_bits(t, i))));
}

/// The nearest integer of the type below or at the value in magnitude; zero for NaN.
template <class T>
T saturated(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

uint64_t low_bits(uint64_t value, int bits) { return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1); }

uint64_t encode_e8m0(double value) {
  if (std::isnan(value)) return kE8M0NaN;
  if (!(value > 0)) return 0;
  if (std::isinf(value)) return kE8M0NaN - 1;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  return static_cast<uint64_t>(std::clamp(exponent - 1 + (fraction >= 0.75) + kE8M0Bias, 0, kE8M0NaN - 1));
}

bool is_number(DType dtype) {
  const char kind = info(dtype).kind;
  return kind == 'f' || kind == 'i' || kind == 'u' || kind == 'b';
}

}  // namespace

uint64_t element_bits(const Tensor& tensor, int64_t index) {
  const int bits = info(tensor.dtype).bits;
  const uint64_t at = static_cast<uint64_t>(index) * static_cast<uint64_t>(bits);
  const size_t first = at / 8;
  const size_t count = (at % 8 + static_cast<uint64_t>(bits) + 7) / 8;
  uint64_t word = 0;
  std::memcpy(&word, tensor.data.data() + first, count);
  return low_bits(word >> (at % 8), bits);
}

void set_element_bits(DType dtype, uint8_t* data, int64_t index, uint64_t code) {
  const int bits = info(dtype).bits;
  const uint64_t at = static_cast<uint64_t>(index) * static_cast<uint64_t>(bits);
  const size_t count = (at % 8 + static_cast<uint64_t>(bits) + 7) / 8;
  uint64_t word = 0;
  std::memcpy(&word, data + at / 8, count);
  word &= ~(low_bits(UINT64_MAX, bits) << (at % 8));
  word |= low_bits(code, bits) << (at % 8);
  std::memcpy(data + at / 8, &word, count);
}

uint64_t bits_of(DType dtype, double value) {
  switch (dtype) {
    case DType::Float32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::Float64: return std::bit_cast<uint64_t>(value);
    case DType::Bool: return value != 0;
    case DType::UInt64: return saturated<uint64_t>(value);
    case DType::Float8E8M0: return encode_e8m0(value);
    default: break;
  }
  if (const auto mini = mini_float(dtype)) return encode(*mini, value);
  const int bits = info(dtype).bits;
  const bool is_signed = is_signed_int(dtype);
  if (!is_integer(dtype)) fail_unsupported("a constant of the type {}", name_of(dtype));
  const int64_t largest = static_cast<int64_t>(low_bits(UINT64_MAX >> 1, is_signed ? bits - 1 : bits));
  const int64_t smallest = is_signed ? -largest - 1 : 0;
  return static_cast<uint64_t>(std::clamp(saturated<int64_t>(value), smallest, largest));
}

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) fail_invalid("a tensor has the negative size {}", dim);
    empty |= dim == 0;
    if (dim != 0 && __builtin_mul_overflow(count, dim, &count)) fail_invalid("the sizes of a tensor overflow 64 bits");
  }
  return empty ? 0 : count;
}

int64_t byte_size(DType dtype, int64_t count) {
  int64_t bits;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(info(dtype).bits), &bits) || bits > INT64_MAX - 7) {
    fail_invalid("the sizes of a tensor overflow 64 bits");
  }
  return (bits + 7) / 8;
}

int64_t Tensor::count() const { return count_of(dims); }

double element_as_double(const Tensor& tensor, int64_t index) {
  return with_element(tensor, index, [](auto value) { return static_cast<double>(value); });
}

int64_t element_as_int(const Tensor& tensor, int64_t index) {
  return with_element(tensor, index, [](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      return saturated<int64_t>(static_cast<double>(value));
    } else {
      return static_cast<int64_t>(value);
    }
  });
}

std::optional<std::vector<int64_t>> ints_of(const Tensor& tensor, int64_t limit) {
  const int64_t count = tensor.count();
  if (count > limit || (!is_integer(tensor.dtype) && tensor.dtype != DType::Bool)) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(element_as_int(tensor, i));
  return values;
}

std::optional<std::vector<double>> floats_of(const Tensor& tensor, int64_t limit) {
  const int64_t count = tensor.count();
  if (count > limit || !is_number(tensor.dtype) || is_computed(tensor.data)) return std::nullopt;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(element_as_double(tensor, i));
  return values;
}

TensorPtr widened(const TensorPtr& tensor) {
  const DType wide = widened(tensor->dtype);
  if (wide == tensor->dtype) return tensor;
  auto result = std::make_shared<Tensor>();
  result->dtype = wide;
  result->dims = tensor->dims;
  const int64_t count = tensor->count();
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(wide, count)));
  for (int64_t i = 0; i < count; ++i)
    set_element_bits(wide, data.data(), i, bits_of(wide, element_as_double(*tensor, i)));
  result->data = Bytes::own(std::move(data));
  return result;
}

TensorPtr make_floats(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  auto result = std::make_shared<Tensor>();
  result->dtype = dtype;
  result->dims = std::move(dims);
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, static_cast<int64_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i)
    set_element_bits(dtype, data.data(), static_cast<int64_t>(i), bits_of(dtype, values[i]));
  result->data = Bytes::own(std::move(data));
  return result;
}

TensorPtr make_scalar(DType dtype, double value) { return make_floats(dtype, {}, {value}); }

TensorPtr make_ints(std::vector<int64_t> values) {
  auto result = std::make_shared<Tensor>();
  result->dtype = DType::Int64;
  result->dims = {static_cast<int64_t>(values.size())};
  std::vector<uint8_t> data(values.size() * sizeof(int64_t));
  if (!values.empty()) std::memcpy(data.data(), values.data(), data.size());
  result->data = Bytes::own(std::move(data));
  return result;
}

namespace {

/// Calls `use(i, at)` for each value of a sparse tensor, with its place in the dense one.
template <class Use>
void for_each_place(const SparseTensor& sparse, Use&& use) {
  const int64_t count = count_of(sparse.dims);
  const int64_t stored = sparse.values->count();
  const Tensor& indices = *sparse.indices;
  const auto rank = static_cast<int64_t>(sparse.dims.size());
  const bool linear = indices.dims.size() == 1;
  require(linear ? indices.dims[0] == stored
                 : indices.dims.size() == 2 && indices.dims[0] == stored && indices.dims[1] == rank,
          "the indices of a sparse tensor do not fit its values");
  for (int64_t i = 0; i < stored; ++i) {
    int64_t at = linear ? element_as_int(indices, i) : 0;
    for (int64_t d = 0; d < rank && !linear; ++d) {
      const int64_t index = element_as_int(indices, i * rank + d);
      require(index >= 0 && index < sparse.dims[static_cast<size_t>(d)], "an index of a sparse tensor is out of range");
      at = at * sparse.dims[static_cast<size_t>(d)] + index;
    }
    require(at >= 0 && at < count, "an index of a sparse tensor is out of range");
    use(i, at);
  }
}

}  // namespace

void check_indices(const SparseTensor& sparse) {
  for_each_place(sparse, [](int64_t, int64_t) {});
}

TensorPtr densified(const SparseTensor& sparse) {
  const int64_t count = count_of(sparse.dims);
  const int bits = info(sparse.values->dtype).bits;
  if (bits < 8) fail_unsupported("a sparse tensor of {} cannot be made dense", name_of(sparse.values->dtype));
  if (count > kMaxDense) fail_unsupported("a sparse tensor of {} elements is too large to be made dense", count);
  const auto step = static_cast<size_t>(bits / 8);
  std::vector<uint8_t> data(room_for<uint8_t>({count, bits / 8}));
  for_each_place(sparse, [&](int64_t i, int64_t at) {
    std::memcpy(data.data() + static_cast<size_t>(at) * step,
                sparse.values->data.data() + static_cast<size_t>(i) * step, step);
  });
  auto result = std::make_shared<Tensor>();
  result->dtype = sparse.values->dtype;
  result->dims = sparse.dims;
  result->data = Bytes::own(std::move(data));
  return result;
}

}  // namespace tonnx
