// scaled_test.cpp - weights times numbers are rounded as single elements are, in every float type.
#include "ir/scaled.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "checks.h"

namespace tonnx {
namespace {

/// All the finite numbers of a type of 16 bits.
Tensor all_halves(DType dtype) {
  const uint32_t infinity = dtype == DType::Float16 ? 0x7c00 : 0x7f80;
  std::vector<uint8_t> bytes;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    if ((code & 0x7fffU) >= infinity) continue;
    bytes.push_back(static_cast<uint8_t>(code & 0xffU));
    bytes.push_back(static_cast<uint8_t>(code >> 8U));
  }
  Tensor result;
  result.dtype = dtype;
  result.dims = {static_cast<int64_t>(bytes.size()) / 2};
  result.data = Bytes::own(std::move(bytes));
  return result;
}

TEST(Scaled, HalvesAreRoundedOnce) {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    const Tensor weights = all_halves(dtype);
    const int64_t count = weights.count();
    for (const double factor :
         {1.0, -1.0, 0.0, 3.0, 1.0 / 3.0, 1.00000001, 0.0009765625, 1e-5, 7e4, 1.5 + 1e-12, 1e-40}) {
      const ScaledNumbers scaled(weights, ChannelLayout{count, 1, 0, 1}, {factor});
      std::vector<uint8_t> got(weights.data.size());
      scaled.compute(0, got.data(), got.size());
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t want = bits_of(dtype, element_as_double(weights, i) * factor);
        const auto at = static_cast<size_t>(2 * i);
        ASSERT_EQ(got[at] | got[at + 1] << 8U, static_cast<int>(want))
            << name_of(dtype) << " " << i << " by " << factor;
      }
    }
  }
}

/// Products that lie in the middle between two numbers of the type, or next to it, and others.
TEST(Scaled, NearTheMiddleTheProductItselfIsRounded) {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const double off : {0.0, 0x1p-52, -0x1p-52, 0x1p-40, -0x1p-30, 0x1p-25, -0x1p-23, 0x1p-22, 0x1p-16}) {
      std::vector<double> numbers, factor;
      for (int i = 0; i < 2048; ++i) {
        const double one = 1 + (i * 37 % 128) / 128.0, next = 1 + (i % 128 + 0.5) / 128;
        numbers.push_back(i % 3 == 0 ? -one : one);
        factor.push_back(next * (1 + off) / one);
      }
      const Tensor weights = *make_floats(dtype, {1, 2048}, numbers);
      const ScaledNumbers scaled(weights, ChannelLayout{1, 2048, 0, 2048}, factor);
      std::vector<uint8_t> got(weights.data.size());
      scaled.compute(0, got.data(), got.size());
      for (size_t i = 0; i < numbers.size(); ++i) {
        const uint64_t want = bits_of(dtype, numbers[i] * factor[i]);
        ASSERT_EQ(got[2 * i] | got[2 * i + 1] << 8U, static_cast<int>(want))
            << name_of(dtype) << " " << i << " " << off;
      }
    }
  }
}

TEST(Scaled, FloatsAreRoundedOnce) {
  std::vector<double> numbers, factor;
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(static_cast<float>(std::ldexp(std::sin(i + 1.0), i % 60 - 30)));
    factor.push_back(std::cos(i * 0.7) * 3);
  }
  const Tensor weights = *make_floats(DType::Float32, {1000}, numbers);
  const ScaledNumbers scaled(weights, ChannelLayout{1, 1000, 0, 1000}, factor);
  std::vector<uint8_t> got(weights.data.size());
  scaled.compute(0, got.data(), got.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    float number = 0;
    std::memcpy(&number, got.data() + 4 * i, 4);
    ASSERT_EQ(number, static_cast<float>(numbers[i] * factor[i])) << i;
  }
}

TEST(Scaled, ChannelsAreThoseOfTheLayout) {
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    std::vector<double> numbers;
    for (int i = 0; i < 6 * 37; ++i) numbers.push_back(i % 29 - 14);
    const Tensor weights = *make_floats(dtype, {6, 37}, numbers);
    const auto width = static_cast<size_t>(byte_size(dtype, 1));
    for (const ChannelLayout& layout :
         {ChannelLayout{37, 6, 0, 6}, ChannelLayout{1, 37, 0, 37}, ChannelLayout{1, 37, 111, 74}}) {
      std::vector<double> factor;
      for (int64_t c = 0; c < layout.channels; ++c) factor.push_back(static_cast<double>(c % 5 - 2));
      Tensor got = weights;
      std::vector<uint8_t> bytes(weights.data.size());
      const ScaledNumbers scaled(weights, layout, factor);
      scaled.compute(0, bytes.data(), 48 * width);  // two parts
      scaled.compute(48 * width, bytes.data() + 48 * width, bytes.size() - 48 * width);
      got.data = Bytes::own(std::move(bytes));
      for (int64_t i = 0; i < got.count(); ++i)
        ASSERT_EQ(element_as_double(got, i), numbers[static_cast<size_t>(i)] * factor[layout.channel(i)]) << i;
    }
  }
}

TEST(Scaled, TheLargestOfEachChannel) {
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    std::vector<double> numbers(40 * 53, 0.25);
    numbers[7 * 53 + 50] = -96;
    numbers[39 * 53 + 3] = 48;
    const Tensor weights = *make_floats(dtype, {40, 53}, numbers);
    const std::vector<double> rows = largest_of_channels(weights, {53, 40, 0, 40});
    const std::vector<double> columns = largest_of_channels(weights, {1, 53, 0, 53});
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(rows[i], i == 7 ? 96 : i == 39 ? 48 : 0.25) << i;
    for (size_t i = 0; i < 53; ++i) EXPECT_EQ(columns[i], i == 50 ? 96 : i == 3 ? 48 : 0.25) << i;
  }
}

TEST(Scaled, WhatIsNoNumberIsTheLargest) {
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    for (const double odd : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
      std::vector<double> numbers(100, 2);
      numbers[3] = odd;
      const Tensor weights = *make_floats(dtype, {10, 10}, numbers);
      EXPECT_FALSE(std::isfinite(largest_of_channels(weights, {10, 10, 0, 10})[0]));
      EXPECT_FALSE(std::isfinite(largest_of_channels(weights, {1, 10, 0, 10})[3]));
      EXPECT_EQ(largest_of_channels(weights, {1, 10, 0, 10})[2], 2);
    }
  }
}

}  // namespace
}  // namespace tonnx
