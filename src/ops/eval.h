// eval.h - evaluation of operators on constants: the newest opset, all number types, exact to the spec.
#pragma once
#include <functional>

#include "ops/node_view.h"

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
  uint8_t* data() { return bytes_.data(); }
  int64_t count() const { return count_; }
  void set(int64_t i, double value) { set_element_bits(tensor_->dtype, data(), i, bits_of(tensor_->dtype, value)); }
  /// Wraps around, as integers do.
  void set(int64_t i, int64_t value) { set_element_bits(tensor_->dtype, data(), i, static_cast<uint64_t>(value)); }
  TensorPtr done();

 private:
  std::shared_ptr<Tensor> tensor_;
  std::vector<uint8_t> bytes_;
  int64_t count_;
};

/// Elements of `x` at `offset + sum(index * stride)`, for all indices of a tensor of these sizes.
TensorPtr strided(const Tensor& x, std::vector<int64_t> dims, const std::vector<int64_t>& strides, int64_t offset = 0);
/// The strides, in elements, of a dense tensor.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims);
/// The strides of `x` seen as a tensor of larger sizes by numpy's rule.
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& from, const std::vector<int64_t>& to);
/// The sizes that inference found for an output, where all are numbers.
std::optional<std::vector<int64_t>> static_dims(const Value* value);

/// One function on every element: of floats in the precision of the type, of integers in 64 bits.
using FloatFn = double (*)(double);
using IntFn = int64_t (*)(int64_t);
using FloatFn2 = double (*)(double, double);
using IntFn2 = int64_t (*)(int64_t, int64_t, bool is_unsigned);
using FloatTest = bool (*)(double, double);
using IntTest = bool (*)(int64_t, int64_t, bool is_unsigned);

Results eval_each(const NodeView& n, FloatFn on_floats, IntFn on_ints);
Results eval_pairs(const NodeView& n, FloatFn2 on_floats, IntFn2 on_ints);
Results eval_tests(const NodeView& n, FloatTest on_floats, IntTest on_ints);

// eval_math.cpp
Results eval_abs(const NodeView& n);
Results eval_neg(const NodeView& n);
Results eval_sqrt(const NodeView& n);
Results eval_exp(const NodeView& n);
Results eval_log(const NodeView& n);
Results eval_reciprocal(const NodeView& n);
Results eval_floor(const NodeView& n);
Results eval_ceil(const NodeView& n);
Results eval_sin(const NodeView& n);
Results eval_cos(const NodeView& n);
Results eval_tanh(const NodeView& n);
Results eval_sigmoid(const NodeView& n);
Results eval_relu(const NodeView& n);
Results eval_sign(const NodeView& n);
Results eval_round(const NodeView& n);
Results eval_erf(const NodeView& n);
Results eval_not(const NodeView& n);
Results eval_add(const NodeView& n);
Results eval_sub(const NodeView& n);
Results eval_mul(const NodeView& n);
Results eval_div(const NodeView& n);
Results eval_pow(const NodeView& n);
Results eval_mod(const NodeView& n);
Results eval_max(const NodeView& n);
Results eval_min(const NodeView& n);
Results eval_equal(const NodeView& n);
Results eval_less(const NodeView& n);
Results eval_less_or_equal(const NodeView& n);
Results eval_greater(const NodeView& n);
Results eval_greater_or_equal(const NodeView& n);
Results eval_and(const NodeView& n);
Results eval_or(const NodeView& n);
Results eval_xor(const NodeView& n);
Results eval_where(const NodeView& n);
Results eval_cast(const NodeView& n);
Results eval_clip(const NodeView& n);
Results eval_reduce_sum(const NodeView& n);
Results eval_reduce_mean(const NodeView& n);
Results eval_reduce_max(const NodeView& n);
Results eval_reduce_min(const NodeView& n);
Results eval_reduce_prod(const NodeView& n);
Results eval_matmul(const NodeView& n);

// eval_move.cpp
Results eval_same_elements(const NodeView& n);  // Reshape and its kin: the first input in the shape of the output
Results eval_transpose(const NodeView& n);
Results eval_expand(const NodeView& n);
Results eval_tile(const NodeView& n);
Results eval_slice(const NodeView& n);
Results eval_split(const NodeView& n);
Results eval_concat(const NodeView& n);
Results eval_gather(const NodeView& n);
Results eval_pad(const NodeView& n);
Results eval_constant_of_shape(const NodeView& n);
Results eval_range(const NodeView& n);

}  // namespace tonnx
