// tensor_test.cpp - elements of every type, against the definitions of their formats.
#include "ir/tensor.h"

#include <cmath>

#include "checks.h"

namespace tonnx {
namespace {

Tensor tensor_of(DType dtype, std::vector<int64_t> dims, std::vector<uint8_t> data) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.data = Bytes::own(std::move(data));
  return tensor;
}

/// One element whose bits are these.
Tensor element(DType dtype, uint64_t bits) {
  std::vector<uint8_t> data(8);
  set_element_bits(dtype, data.data(), 0, bits);
  return tensor_of(dtype, {1}, data);
}

struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;
  bool is_nan_all_ones;  // only the code with all ones is NaN
  bool is_nan_negative_zero;
};

// "FP8 Formats for Deep Learning" for the fn and IEEE kinds, "8-bit Numerical Formats for Deep Neural Networks" for the
// fnuz ones, the OCP microscaling specification for the smaller ones.
constexpr Format kFormats[] = {
    {DType::Float16, 5, 10, 15, true, false, false},      {DType::BFloat16, 8, 7, 127, true, false, false},
    {DType::Float8E5M2, 5, 2, 15, true, false, false},    {DType::Float8E4M3FN, 4, 3, 7, false, true, false},
    {DType::Float8E4M3FNUZ, 4, 3, 8, false, false, true}, {DType::Float8E5M2FNUZ, 5, 2, 16, false, false, true},
    {DType::Float6E2M3, 2, 3, 1, false, false, false},    {DType::Float6E3M2, 3, 2, 3, false, false, false},
    {DType::Float4E2M1, 2, 1, 1, false, false, false},
};

double by_definition(const Format& f, uint64_t code) {
  const uint64_t ones = (uint64_t{1} << f.exponent_bits) - 1, mantissas = uint64_t{1} << f.mantissa_bits;
  const uint64_t exponent = code / mantissas % (ones + 1), mantissa = code % mantissas;
  const double sign = code / mantissas / (ones + 1) == 1 ? -1 : 1;
  const bool top = exponent == ones;
  if (f.has_infinity && top) return mantissa == 0 ? sign * INFINITY : NAN;
  if (f.is_nan_all_ones && top && mantissa == mantissas - 1) return NAN;
  if (f.is_nan_negative_zero && sign < 0 && exponent == 0 && mantissa == 0) return NAN;
  const double fraction = static_cast<double>(mantissa) / static_cast<double>(mantissas);
  if (exponent == 0) return sign * std::pow(2.0, 1 - f.bias) * fraction;
  return sign * std::pow(2.0, static_cast<int>(exponent) - f.bias) * (1 + fraction);
}

TEST(SmallFloats, EveryCodeIsWhatTheFormatDefines) {
  for (const Format& f : kFormats) {
    const uint64_t codes = uint64_t{1} << info(f.dtype).bits;
    for (uint64_t code = 0; code < codes; ++code) {
      const double expected = by_definition(f, code);
      const double value = element_as_double(element(f.dtype, code), 0);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << name_of(f.dtype) << " " << code;
      } else {
        ASSERT_EQ(value, expected) << name_of(f.dtype) << " " << code;
        ASSERT_EQ(std::signbit(value), std::signbit(expected)) << name_of(f.dtype) << " " << code;
        ASSERT_EQ(bits_of(f.dtype, value), code) << name_of(f.dtype);
      }
    }
  }
}

TEST(SmallFloats, RoundToNearestTiesToEven) {
  for (const Format& f : kFormats) {
    const uint64_t positive = uint64_t{1} << (info(f.dtype).bits - 1);
    for (uint64_t code = 0; code + 1 < positive; ++code) {
      const double low = by_definition(f, code), high = by_definition(f, code + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double middle = (low + high) / 2;
      ASSERT_EQ(bits_of(f.dtype, middle), code % 2 == 0 ? code : code + 1) << name_of(f.dtype) << " " << middle;
      ASSERT_EQ(bits_of(f.dtype, std::nextafter(middle, 0)), code) << name_of(f.dtype);
      ASSERT_EQ(bits_of(f.dtype, std::nextafter(middle, HUGE_VAL)), code + 1) << name_of(f.dtype);
    }
  }
}

TEST(SmallFloats, PastTheLargest) {
  EXPECT_EQ(bits_of(DType::Float16, 1e6), 0x7C00U);
  EXPECT_EQ(bits_of(DType::Float16, -INFINITY), 0xFC00U);
  EXPECT_EQ(bits_of(DType::BFloat16, 1e300), 0x7F80U);
  EXPECT_EQ(bits_of(DType::Float8E5M2, 1e6), 0x7CU);
  EXPECT_EQ(bits_of(DType::Float8E4M3FN, 1e6), 0x7EU);     // 448
  EXPECT_EQ(bits_of(DType::Float8E4M3FNUZ, -1e6), 0xFFU);  // -240
  EXPECT_EQ(bits_of(DType::Float8E5M2FNUZ, INFINITY), 0x7FU);
  EXPECT_EQ(bits_of(DType::Float4E2M1, 100), 0x7U);  // 6
  EXPECT_EQ(bits_of(DType::Float6E2M3, 100), 0x1FU);
  EXPECT_EQ(bits_of(DType::Float8E4M3FNUZ, -0.0), 0U);  // no negative zero
  for (const DType dtype :
       {DType::Float16, DType::BFloat16, DType::Float8E5M2, DType::Float8E4M3FN, DType::Float8E4M3FNUZ,
        DType::Float8E5M2FNUZ, DType::Float8E8M0, DType::Float32, DType::Float64}) {
    EXPECT_TRUE(std::isnan(element_as_double(element(dtype, bits_of(dtype, NAN)), 0))) << name_of(dtype);
  }
}

TEST(Float8E8M0, IsAPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    const double value = std::pow(2.0, code - 127);
    EXPECT_EQ(element_as_double(element(DType::Float8E8M0, static_cast<uint64_t>(code)), 0), value);
    EXPECT_EQ(bits_of(DType::Float8E8M0, value), static_cast<uint64_t>(code));
  }
  EXPECT_TRUE(std::isnan(element_as_double(element(DType::Float8E8M0, 255), 0)));
  EXPECT_EQ(bits_of(DType::Float8E8M0, 0.0), 0U);
  EXPECT_EQ(bits_of(DType::Float8E8M0, INFINITY), 254U);
}

TEST(PackedElements, LowestBitsFirst) {
  const Tensor int4 = tensor_of(DType::Int4, {3}, {0x7F, 0x08});
  EXPECT_EQ(*ints_of(int4), (std::vector<int64_t>{-1, 7, -8}));
  const Tensor uint4 = tensor_of(DType::UInt4, {3}, {0x7F, 0x08});
  EXPECT_EQ(*ints_of(uint4), (std::vector<int64_t>{15, 7, 8}));
  const Tensor int2 = tensor_of(DType::Int2, {5}, {0b11'10'01'00, 0b10});
  EXPECT_EQ(*ints_of(int2), (std::vector<int64_t>{0, 1, -2, -1, -2}));
  const Tensor uint2 = tensor_of(DType::UInt2, {5}, {0b11'10'01'00, 0b10});
  EXPECT_EQ(*ints_of(uint2), (std::vector<int64_t>{0, 1, 2, 3, 2}));
  const Tensor float4 = tensor_of(DType::Float4E2M1, {3}, {0x7A, 0x03});
  EXPECT_EQ(*floats_of(float4), (std::vector<double>{-1.0, 6.0, 1.5}));
  // four elements of six bits in three bytes: codes 0x01, 0x3F, 0x08, 0x20
  const Tensor float6 = tensor_of(DType::Float6E2M3, {4}, {0xC1, 0x8F, 0x80});
  EXPECT_EQ(*floats_of(float6), (std::vector<double>{0.125, -7.5, 1.0, -0.0}));
}

TEST(Integers, OfEveryWidth) {
  const std::vector<uint8_t> ones(8, 0xFF);
  for (const DType dtype : {DType::Int8, DType::Int16, DType::Int32, DType::Int64}) {
    EXPECT_EQ(element_as_int(tensor_of(dtype, {1}, ones), 0), -1) << name_of(dtype);
  }
  EXPECT_EQ(element_as_int(tensor_of(DType::UInt8, {1}, ones), 0), 255);
  EXPECT_EQ(element_as_int(tensor_of(DType::UInt16, {1}, ones), 0), 65535);
  EXPECT_EQ(element_as_int(tensor_of(DType::UInt32, {1}, ones), 0), 4294967295);
  EXPECT_EQ(element_as_double(tensor_of(DType::UInt64, {1}, ones), 0), std::pow(2.0, 64));
  EXPECT_EQ(*ints_of(tensor_of(DType::Int16, {2}, {0x01, 0x80, 0xFF, 0x7F})), (std::vector<int64_t>{-32767, 32767}));
  EXPECT_EQ(*ints_of(tensor_of(DType::Bool, {2}, {0, 1})), (std::vector<int64_t>{0, 1}));
}

TEST(Integers, OutOfRangeGoesToTheEnd) {
  EXPECT_EQ(bits_of(DType::Int8, 300), 127U);
  EXPECT_EQ(static_cast<int8_t>(bits_of(DType::Int8, -300)), -128);
  EXPECT_EQ(bits_of(DType::UInt4, -3), 0U);
  EXPECT_EQ(bits_of(DType::UInt2, 9), 3U);
  EXPECT_EQ(bits_of(DType::UInt64, 1e30), UINT64_MAX);
  EXPECT_EQ(static_cast<int64_t>(bits_of(DType::Int64, -1e30)), INT64_MIN);
  EXPECT_EQ(bits_of(DType::Int32, NAN), 0U);
  EXPECT_EQ(element_as_int(*make_scalar(DType::Float32, INFINITY), 0), INT64_MAX);
  EXPECT_EQ(element_as_int(*make_scalar(DType::Float64, NAN), 0), 0);
  EXPECT_EQ(element_as_int(*make_scalar(DType::Float64, -2.9), 0), -2);
}

TEST(MakeFloats, GivesBackTheSameNumbersInEveryType) {
  const std::vector<double> values{0, 1, 1, 0, 1, 0, 0};
  for (int number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    const char kind = info(dtype).kind;
    if (kind == 's' || kind == 'c' || dtype == DType::Float8E8M0) continue;
    const TensorPtr made = make_floats(dtype, {7}, values);
    EXPECT_EQ(static_cast<int64_t>(made->data.size()), byte_size(dtype, 7)) << name_of(dtype);
    EXPECT_EQ(*floats_of(*made), values) << name_of(dtype);
  }
}

TEST(Tensors, CountsAndSizes) {
  EXPECT_EQ(count_of(std::vector<int64_t>{}), 1);
  EXPECT_EQ(count_of(std::vector<int64_t>{2, 3, 4}), 24);
  EXPECT_EQ(count_of(std::vector<int64_t>{INT64_MAX, 0}), 0);
  EXPECT_ERROR(InvalidModel, "overflow", count_of(std::vector<int64_t>{INT64_MAX, 0, INT64_MAX}));  // strides would
  EXPECT_ERROR(InvalidModel, "negative", count_of(std::vector<int64_t>{2, -1}));
  EXPECT_ERROR(InvalidModel, "overflow", count_of(std::vector<int64_t>{int64_t{1} << 32, int64_t{1} << 31}));
  EXPECT_EQ(byte_size(DType::Int4, 3), 2);
  EXPECT_EQ(byte_size(DType::Float6E3M2, 5), 4);
  EXPECT_EQ(byte_size(DType::Complex128, 2), 32);
  EXPECT_ERROR(InvalidModel, "overflow", byte_size(DType::Float64, INT64_MAX / 8));
}

TEST(Tensors, ValuesStopAtTheLimit) {
  const Tensor many = tensor_of(DType::Int8, {5}, {1, 2, 3, 4, 5});
  EXPECT_FALSE(ints_of(many, 4));
  EXPECT_TRUE(ints_of(many, 5));
  EXPECT_FALSE(ints_of(*make_scalar(DType::Float32, 1)));
  EXPECT_FALSE(floats_of(tensor_of(DType::Complex64, {1}, std::vector<uint8_t>(8))));
}

TEST(Tensors, WidenedKeepsTheValues) {
  const auto packed = std::make_shared<const Tensor>(tensor_of(DType::Int4, {3}, {0x7F, 0x08}));
  const TensorPtr wide = widened(packed);
  EXPECT_EQ(wide->dtype, DType::Int8);
  EXPECT_EQ(wide->dims, packed->dims);
  EXPECT_EQ(*ints_of(*wide), *ints_of(*packed));
  const TensorPtr same = make_ints({1, 2});
  EXPECT_EQ(widened(same), same);
}

SparseTensor sparse_of(std::vector<int64_t> dims, TensorPtr values, std::vector<int64_t> indices,
                       std::vector<int64_t> index_dims) {
  auto index_tensor = std::make_shared<Tensor>(*make_ints(std::move(indices)));
  index_tensor->dims = std::move(index_dims);
  return {std::move(values), index_tensor, std::move(dims), {}};
}

TEST(Densified, PutsValuesAtTheirIndices) {
  const TensorPtr values = make_floats(DType::Float32, {2}, {5, 7});
  EXPECT_EQ(*floats_of(*densified(sparse_of({2, 3}, values, {1, 5}, {2}))), (std::vector<double>{0, 5, 0, 0, 0, 7}));
  EXPECT_EQ(*floats_of(*densified(sparse_of({2, 3}, values, {0, 1, 1, 2}, {2, 2}))),
            (std::vector<double>{0, 5, 0, 0, 0, 7}));
}

TEST(Densified, RefusesWhatDoesNotFit) {
  const TensorPtr values = make_floats(DType::Float32, {2}, {5, 7});
  EXPECT_ERROR(InvalidModel, "out of range", densified(sparse_of({2, 3}, values, {1, 6}, {2})));
  EXPECT_ERROR(InvalidModel, "out of range", densified(sparse_of({2, 3}, values, {-1, 0}, {2})));
  EXPECT_ERROR(InvalidModel, "out of range", densified(sparse_of({2, 3}, values, {0, 1, 1, 3}, {2, 2})));
  EXPECT_ERROR(InvalidModel, "do not fit", densified(sparse_of({2, 3}, values, {1}, {1})));
  EXPECT_ERROR(Unsupported, "too large", densified(sparse_of({1 << 20, 1 << 20}, values, {1, 5}, {2})));
  EXPECT_ERROR(Unsupported, "cannot be made dense",
               densified(sparse_of({4}, make_floats(DType::Int4, {2}, {1, 2}), {0, 1}, {2})));
}

}  // namespace
}  // namespace tonnx
