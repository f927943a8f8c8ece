// tensor.h - constant data: an element type, sizes, and bytes that mostly lie in a mapped file.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/checked_list.h"
#include "ir/dtype.h"

namespace tonnx {

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Little-endian, dense, row-major. Types smaller than a byte are packed, lowest bits first, as in ONNX.
struct Tensor {
  DType dtype = DType::Undefined;
  Ints dims;
  Bytes data;                        // empty for strings
  std::vector<std::string> strings;  // for DType::String
  std::string doc;
  Metadata metadata;
  Bytes source;             // the message it was read from, whole; empty once anything about it has changed
  std::string source_name;  // the name in that message
  bool external = false;    // the bytes were beside the model file

  int64_t count() const;
};
using TensorPtr = std::shared_ptr<const Tensor>;

struct SparseTensor {
  TensorPtr values;
  TensorPtr indices;
  Ints dims;
  Bytes source;
};

/// The number of elements; throws InvalidModel where it overflows or a size is negative.
int64_t count_of(const std::vector<int64_t>& dims);
/// How many bytes that many elements take.
int64_t byte_size(DType dtype, int64_t count);

/// Elements as numbers. Nothing for strings and complex numbers, past `limit` elements, and where floats are made only
/// when they are written.
std::optional<std::vector<int64_t>> ints_of(const Tensor& tensor, int64_t limit = 4096);
std::optional<std::vector<double>> floats_of(const Tensor& tensor, int64_t limit = 4096);

/// The same values in the type that PyTorch holds them in: nothing changes but for types smaller than a byte.
TensorPtr widened(const TensorPtr& tensor);

TensorPtr make_ints(std::vector<int64_t> values);  // int64, one dimension
TensorPtr make_scalar(DType dtype, double value);  // no dimension
TensorPtr make_floats(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values);  // any number type
/// Throws InvalidModel where the indices do not fit the values, or lie outside.
void check_indices(const SparseTensor& sparse);
/// A dense tensor with the sparse one's values in place.
TensorPtr densified(const SparseTensor& sparse);

/// One element of any number type but the complex ones. As an integer: towards zero, and within 64 bits.
double element_as_double(const Tensor& tensor, int64_t index);
int64_t element_as_int(const Tensor& tensor, int64_t index);

/// The bits of one element of at most 64 bits, in the lowest bits of the number.
uint64_t element_bits(const Tensor& tensor, int64_t index);
void set_element_bits(DType dtype, uint8_t* data, int64_t index, uint64_t bits);
/// The bits of the number in that type: to nearest, ties to even, where it is a float type; past its range the last
/// number that it has, or infinity where it has that.
uint64_t bits_of(DType dtype, double value);

}  // namespace tonnx
