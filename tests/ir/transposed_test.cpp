// transposed_test.cpp - every element of a transposed matrix is where the definition says, whatever its size.
#include "ir/transposed.h"

#include <cstring>

#include "checks.h"
#include "ir/scaled.h"

namespace tonnx {
namespace {

const std::pair<DType, size_t> kTypes[] = {
    {DType::Int8, 1}, {DType::BFloat16, 2}, {DType::Float32, 4}, {DType::Int64, 8}, {DType::Complex128, 16}};
const std::pair<int64_t, int64_t> kSizes[] = {{1, 1},   {1, 70},  {70, 1},   {2, 3},     {16, 16}, {31, 33},
                                              {64, 64}, {65, 63}, {130, 67}, {200, 129}, {3, 1000}};

Tensor numbered(DType dtype, int64_t rows, int64_t columns) {
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, rows * columns)));
  uint32_t state = 1;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525U + 1013904223U) >> 24U);
  Tensor result;
  result.dtype = dtype;
  result.dims = {rows, columns};
  result.data = Bytes::own(std::move(bytes));
  return result;
}

std::string written(const Bytes& bytes) {
  std::string result;
  for_each_piece(bytes, [&](std::string_view piece) { result += piece; });
  return result;
}

TEST(Transposed, EveryElementIsInItsPlace) {
  for (const auto& [dtype, width] : kTypes) {
    for (const auto& [rows, columns] : kSizes) {
      const Tensor matrix = numbered(dtype, rows, columns);
      const std::string got = written(bytes_to_write(matrix, true));
      ASSERT_EQ(got.size(), matrix.data.size());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          const auto from = static_cast<size_t>(r * columns + c) * width,
                     to = static_cast<size_t>(c * rows + r) * width;
          ASSERT_EQ(std::memcmp(matrix.data.data() + from, got.data() + to, width), 0)
              << width << " bytes, " << rows << " times " << columns << ", at " << r << ", " << c;
        }
      }
    }
  }
}

TEST(Transposed, AnyPartIsThatPartOfTheWhole) {
  const TransposedMatrix matrix(numbered(DType::Float32, 37, 53));
  std::string whole(matrix.size(), '\0');
  matrix.compute(0, reinterpret_cast<uint8_t*>(whole.data()), whole.size());
  for (size_t begin = 0; begin < whole.size(); begin += 16 * 7) {
    for (const size_t size : {4UL, 16UL, 148UL, 160UL, 1200UL, 4000UL}) {
      if (begin + size > whole.size()) continue;
      std::string part(size, '\0');
      matrix.compute(begin, reinterpret_cast<uint8_t*>(part.data()), size);
      ASSERT_EQ(part, whole.substr(begin, size)) << size << " from " << begin;
    }
  }
}

TEST(Transposed, LargerThanOnePiece) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1000, 3001}, {3001, 1000}, {1'500'000, 2}}) {
    const Tensor matrix = numbered(DType::Int16, rows, columns);
    const std::string got = written(bytes_to_write(matrix, true));
    ASSERT_GT(got.size(), TransposedMatrix(matrix).best_piece());
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int64_t to = i % columns * rows + i / columns;
      ASSERT_EQ(std::memcmp(matrix.data.data() + 2 * i, got.data() + 2 * to, 2), 0) << i;
    }
  }
}

TEST(Transposed, ElementsOfLessThanAByte) {
  const Tensor matrix = numbered(DType::UInt4, 7, 5);
  Tensor got;
  got.dtype = DType::UInt4;
  got.dims = {5, 7};
  got.data = Bytes::own(written(bytes_to_write(matrix, true)));
  ASSERT_EQ(got.data.size(), 18U);
  for (int64_t r = 0; r < 7; ++r) {
    for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(element_bits(matrix, r * 5 + c), element_bits(got, c * 7 + r));
  }
}

TEST(Transposed, WhatIsScaledIsScaledFirst) {
  std::vector<float> numbers(70 * 90);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  Tensor matrix;
  matrix.dtype = DType::Float32;
  matrix.dims = {70, 90};
  std::vector<uint8_t> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  matrix.data = Bytes::own(std::move(bytes));
  std::vector<double> factor(90);
  for (size_t i = 0; i < factor.size(); ++i) factor[i] = static_cast<double>(i + 1);
  const auto owner = std::make_shared<const ScaledNumbers>(matrix, ChannelLayout{1, 90, 0, 90}, factor);
  matrix.data = Bytes(owner, owner->begin(), owner->size());
  const std::string got = written(bytes_to_write(matrix, true));
  for (size_t r = 0; r < 70; ++r) {
    for (size_t c = 0; c < 90; ++c) {
      float element = 0;
      std::memcpy(&element, got.data() + (c * 70 + r) * sizeof(float), sizeof(float));
      ASSERT_EQ(element, numbers[r * 90 + c] * static_cast<float>(c + 1));
    }
  }
}

TEST(Transposed, NothingIsNothing) {
  EXPECT_EQ(written(bytes_to_write(numbered(DType::Float32, 0, 5), true)), "");
  EXPECT_EQ(written(bytes_to_write(numbered(DType::Float32, 5, 0), true)), "");
}

}  // namespace
}  // namespace tonnx
