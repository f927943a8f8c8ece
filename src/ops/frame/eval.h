// eval.h - evaluation of operators on constants: the newest opset, all number types, exact to the spec.
#pragma once
#include "base/scratch.h"
#include "ops/frame/node_view.h"

namespace tonnx {

/// The outputs, in order. Empty: this form is not evaluated.
class Results : public std::vector<TensorPtr> {
 public:
  Results() = default;
  Results(TensorPtr one) : std::vector<TensorPtr>{std::move(one)} {}  // NOLINT: one output is the rule
};

/// A tensor in the making.
class NewTensor {
 public:
  NewTensor(DType dtype, std::vector<int64_t> dims);
  uint8_t* data() { return bytes_.data(); }  // zeroes at first
  int64_t count() const { return count_; }
  void set(int64_t i, double value) { set_element_bits(tensor_->dtype, data(), i, bits_of(tensor_->dtype, value)); }
  /// Wraps around, as integers do.
  void set(int64_t i, int64_t value) { set_element_bits(tensor_->dtype, data(), i, static_cast<uint64_t>(value)); }
  TensorPtr done();

 private:
  std::shared_ptr<Tensor> tensor_;
  int64_t count_;
  Scratch bytes_;
};

/// Elements of `x` at `offset + sum(index * stride)`, for all indices of a tensor of these sizes.
TensorPtr strided(const Tensor& x, std::vector<int64_t> dims, const std::vector<int64_t>& strides, int64_t offset = 0);
/// The strides, in elements, of a dense tensor.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims);
/// The strides of `x` seen as a tensor of larger sizes by numpy's rule.
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& from, const std::vector<int64_t>& to);
/// The sizes of two tensors that are broadcast together; nothing where they cannot be.
std::optional<std::vector<int64_t>> broadcast_dims(const std::vector<int64_t>& a, const std::vector<int64_t>& b);
/// The sizes that inference found for an output, where all are numbers.
std::optional<std::vector<int64_t>> static_dims(const Value* value);

}  // namespace tonnx
