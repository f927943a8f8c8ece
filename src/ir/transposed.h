// transposed.h - matrices with rows and columns swapped, in blocks that stay in the nearest cache.
#pragma once
#include "base/computed.h"
#include "ir/tensor.h"

namespace tonnx {

/// A matrix in memory: `rows` times `columns` elements of 1, 2, 4, 8 or 16 bytes, each row `stride` bytes behind the
/// one before.
struct MatrixView {
  const uint8_t* data;
  size_t rows, columns, stride, width;
};

/// Writes the columns of a matrix as rows that are `stride` bytes apart.
void transpose(const MatrixView& matrix, uint8_t* target, size_t stride);

/// A matrix whose rows and columns are swapped when it is written.
class TransposedMatrix : public ComputedBytes {
 public:
  explicit TransposedMatrix(Tensor matrix);

  const uint8_t* begin() const override { return matrix_.data.data(); }
  size_t size() const override { return matrix_.data.size(); }
  void compute(size_t offset, uint8_t* into, size_t size) const override;
  size_t best_piece() const override;

  const Tensor& matrix() const { return matrix_; }

 private:
  void put_columns(size_t first_row, size_t row_count, size_t first, size_t count, uint8_t* into) const;
  void compute_packed(size_t offset, uint8_t* into, size_t size) const;

  Tensor matrix_;
  size_t rows_, columns_;
  size_t width_;                   // of an element in bytes; 0 where it is packed with others into one
  const ComputedBytes* computed_;  // what makes the matrix itself, if it is made as well
};

/// The bytes of a weight as they are to be written: with its two dimensions swapped, or as they are.
Bytes bytes_to_write(const Tensor& tensor, bool transposed);

}  // namespace tonnx
