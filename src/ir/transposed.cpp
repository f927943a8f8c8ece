// transposed.cpp - swaps rows and columns: squares of vectors in registers, inside of squares of cache lines.
#include "ir/transposed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/cast_numbers.h"

namespace tonnx {
namespace {

constexpr size_t kVector = 16;  // bytes; every machine has registers of that size
constexpr size_t kLine = 64;    // bytes of a cache line

template <class T>
struct VectorOf {
  using Type __attribute__((vector_size(kVector))) = T;
};
template <class T>
using Vector = typename VectorOf<T>::Type;

/// The first halves, or the second ones, of two vectors, an element of each in turn.
template <class T, size_t kHalf, size_t... I>
Vector<T> interleaved(Vector<T> a, Vector<T> b, std::index_sequence<I...>) {
  constexpr size_t kCount = sizeof...(I);
  return __builtin_shufflevector(a, b, (kHalf * kCount / 2 + I / 2 + I % 2 * kCount)...);
}

/// Transposes a square of as many vectors as a vector has elements. Each round turns the bits of an element's place,
/// those of its row and then those of its column, by one; when all of a column's have passed, the two are swapped.
template <class T>
void transpose_vectors(const uint8_t* source, size_t source_stride, uint8_t* target, size_t target_stride) {
  constexpr size_t kCount = kVector / sizeof(T);
  constexpr auto kEach = std::make_index_sequence<kCount>();
  Vector<T> rows[kCount], mixed[kCount];
#pragma GCC unroll 16
  for (size_t i = 0; i < kCount; ++i) std::memcpy(&rows[i], source + i * source_stride, kVector);
#pragma GCC unroll 16
  for (size_t left = kCount; left > 1; left /= 2) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kCount / 2; ++i) {
      mixed[2 * i] = interleaved<T, 0>(rows[i], rows[i + kCount / 2], kEach);
      mixed[2 * i + 1] = interleaved<T, 1>(rows[i], rows[i + kCount / 2], kEach);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < kCount; ++i) rows[i] = mixed[i];
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kCount; ++i) std::memcpy(target + i * target_stride, &rows[i], kVector);
}

/// Transposes a square whose rows are cache lines, one behind the other.
template <class T>
void transpose_lines(const uint8_t* source, uint8_t* target, size_t target_stride) {
  constexpr size_t kCount = kVector / sizeof(T), kSide = kLine / sizeof(T);
  for (size_t column = 0; column < kSide; column += kCount) {
    for (size_t row = 0; row < kSide; row += kCount) {
      transpose_vectors<T>(source + row * kLine + column * sizeof(T), kLine,
                           target + column * target_stride + row * sizeof(T), target_stride);
    }
  }
}

/// Square by square. Each is copied first: rows that lie a power of two apart would drive each other out of the cache.
template <class T>
void transpose_squares(const MatrixView& matrix, uint8_t* target, size_t stride) {
  constexpr size_t kSide = kLine / sizeof(T);
  alignas(kLine) uint8_t lines[kSide * kLine], swapped[kSide * kLine];
  for (size_t row = 0; row < matrix.rows; row += kSide) {
    const size_t height = std::min(kSide, matrix.rows - row);
    for (size_t column = 0; column < matrix.columns; column += kSide) {
      const size_t width = std::min(kSide, matrix.columns - column);
      const uint8_t* from = matrix.data + row * matrix.stride + column * sizeof(T);
      uint8_t* to = target + column * stride + row * sizeof(T);
      if (height == kSide && width == kSide) {
        for (size_t i = 0; i < kSide; ++i) {
          __builtin_prefetch(from + (i + kSide) * matrix.stride);
          std::memcpy(lines + i * kLine, from + i * matrix.stride, kLine);
        }
        transpose_lines<T>(lines, to, stride);
        continue;
      }
      for (size_t i = 0; i < height; ++i) std::memcpy(lines + i * kLine, from + i * matrix.stride, width * sizeof(T));
      transpose_lines<T>(lines, swapped, kLine);
      for (size_t i = 0; i < width; ++i) std::memcpy(to + i * stride, swapped + i * kLine, height * sizeof(T));
    }
  }
}

void transpose_wide(const MatrixView& matrix, uint8_t* target, size_t stride) {
  constexpr size_t kSide = 8, kWide = 16;
  for (size_t column = 0; column < matrix.columns; column += kSide) {
    const size_t end = std::min(column + kSide, matrix.columns);
    for (size_t row = 0; row < matrix.rows; ++row) {
      for (size_t i = column; i < end; ++i)
        std::memcpy(target + i * stride + row * kWide, matrix.data + row * matrix.stride + i * kWide, kWide);
    }
  }
}

}  // namespace

void transpose(const MatrixView& matrix, uint8_t* target, size_t stride) {
  switch (matrix.width) {
    case 1: return transpose_squares<uint8_t>(matrix, target, stride);
    case 2: return transpose_squares<uint16_t>(matrix, target, stride);
    case 4: return transpose_squares<uint32_t>(matrix, target, stride);
    case 8: return transpose_squares<uint64_t>(matrix, target, stride);
    default: return transpose_wide(matrix, target, stride);
  }
}

TransposedMatrix::TransposedMatrix(Tensor matrix)
    : matrix_(std::move(matrix)),
      rows_(static_cast<size_t>(matrix_.dims[0])),
      columns_(static_cast<size_t>(matrix_.dims[1])),
      width_(static_cast<size_t>(info(matrix_.dtype).bits / 8)),
      computed_(dynamic_cast<const ComputedBytes*>(matrix_.data.owner().get())) {}

/// Whole rows of the result, and as many as take whole cache lines of each row of the matrix, where that is not too
/// much.
size_t TransposedMatrix::best_piece() const {
  constexpr size_t kUsual = size_t{1} << 19, kMost = size_t{1} << 23;
  const size_t lines = kLine * rows_;  // a cache line of each row
  if (width_ == 0 || lines > kMost) return kUsual;
  return std::max(kUsual / lines, size_t{1}) * lines;
}

/// Writes a part of some columns, which follow each other in the result.
void TransposedMatrix::put_columns(size_t first_row, size_t row_count, size_t first, size_t count,
                                   uint8_t* into) const {
  const size_t stride = columns_ * width_, begin = first_row * stride + first * width_;
  if (computed_ == nullptr)
    return transpose({matrix_.data.data() + begin, row_count, count, stride, width_}, into, row_count * width_);
  constexpr size_t kRows = kLine;  // that are made at a time
  std::vector<uint8_t> made(std::min(kRows, row_count) * count * width_);
  const size_t before = static_cast<size_t>(matrix_.data.data() - computed_->begin());
  for (size_t row = 0; row < row_count; row += kRows) {
    const size_t height = std::min(kRows, row_count - row);
    for (size_t i = 0; i < height; ++i)
      computed_->compute(before + begin + (row + i) * stride, made.data() + i * count * width_, count * width_);
    transpose({made.data(), height, count, count * width_, width_}, into + row * width_, row_count * width_);
  }
}

void TransposedMatrix::compute_packed(size_t offset, uint8_t* into, size_t size) const {
  const size_t in_byte = 8 / static_cast<size_t>(info(matrix_.dtype).bits);
  const size_t first = offset * in_byte, count = std::min(size * in_byte, rows_ * columns_ - first);
  std::memset(into, 0, size);
  for (size_t i = 0; i < count; ++i) {
    const size_t column = (first + i) / rows_, row = (first + i) % rows_;
    const auto bits = element_bits(matrix_, static_cast<int64_t>(row * columns_ + column));
    set_element_bits(matrix_.dtype, into, static_cast<int64_t>(i), bits);
  }
}

void TransposedMatrix::compute(size_t offset, uint8_t* into, size_t size) const {
  if (width_ == 0) return compute_packed(offset, into, size);
  size_t at = offset / width_;
  const size_t end = (offset + size) / width_;
  while (at < end) {  // the rest of a column, whole ones, or the beginning of one
    const size_t column = at / rows_, row = at % rows_;
    const bool is_part = row > 0 || end - at < rows_;
    const size_t count = is_part ? 1 : (end - at) / rows_;
    const size_t height = is_part ? std::min(rows_ - row, end - at) : rows_;
    put_columns(row, height, column, count, into + (at * width_ - offset));
    at += count * height;
  }
}

Bytes bytes_to_write(const Tensor& tensor, bool transposed) {
  if (!transposed) return tensor.data;
  if (const CastNumbers* cast = find_cast(tensor)) {  // of what the file has: that is half as much, mostly
    Tensor numbers = cast->numbers();
    numbers.dims = tensor.dims;
    numbers.data = bytes_to_write(numbers, true);
    return cast_when_written(numbers, tensor.dtype)->data;
  }
  const auto owner = std::make_shared<const TransposedMatrix>(tensor);
  return Bytes(owner, owner->begin(), owner->size());
}

}  // namespace tonnx
