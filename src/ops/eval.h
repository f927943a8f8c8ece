// eval.h - evaluation of operators on constants: the newest opset, all number types, exact to the spec.
#pragma once
#include "base/scratch.h"
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

// Each of these gives {} for a form or a type that it does not evaluate.

// eval_unary.cpp
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
Results eval_tan(const NodeView& n);
Results eval_asin(const NodeView& n);
Results eval_acos(const NodeView& n);
Results eval_atan(const NodeView& n);
Results eval_sinh(const NodeView& n);
Results eval_cosh(const NodeView& n);
Results eval_asinh(const NodeView& n);
Results eval_acosh(const NodeView& n);
Results eval_atanh(const NodeView& n);
Results eval_bitwise_not(const NodeView& n);
Results eval_is_nan(const NodeView& n);
Results eval_is_inf(const NodeView& n);
Results eval_celu(const NodeView& n);
Results eval_elu(const NodeView& n);
Results eval_gelu(const NodeView& n);
Results eval_hard_sigmoid(const NodeView& n);
Results eval_hard_swish(const NodeView& n);
Results eval_leaky_relu(const NodeView& n);
Results eval_mish(const NodeView& n);
Results eval_selu(const NodeView& n);
Results eval_shrink(const NodeView& n);
Results eval_softplus(const NodeView& n);
Results eval_softsign(const NodeView& n);
Results eval_swish(const NodeView& n);
Results eval_thresholded_relu(const NodeView& n);

// eval_math.cpp
Results eval_prelu(const NodeView& n);
Results eval_swiglu(const NodeView& n);
Results eval_sum(const NodeView& n);
Results eval_mean(const NodeView& n);
Results eval_bit_shift(const NodeView& n);
Results eval_bitwise_and(const NodeView& n);
Results eval_bitwise_or(const NodeView& n);
Results eval_bitwise_xor(const NodeView& n);
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
Results eval_clip(const NodeView& n);

// eval_cast.cpp
Results eval_cast(const NodeView& n);
Results eval_bit_cast(const NodeView& n);

// eval_quantize.cpp
Results eval_quantize(const NodeView& n);
Results eval_dequantize(const NodeView& n);
Results eval_dynamic_quantize(const NodeView& n);

// eval_reduce.cpp
Results eval_reduce_l1(const NodeView& n);
Results eval_reduce_l2(const NodeView& n);
Results eval_reduce_log_sum(const NodeView& n);
Results eval_reduce_log_sum_exp(const NodeView& n);
Results eval_reduce_sum_square(const NodeView& n);
Results eval_arg_max(const NodeView& n);
Results eval_arg_min(const NodeView& n);
Results eval_reduce_sum(const NodeView& n);
Results eval_reduce_mean(const NodeView& n);
Results eval_reduce_max(const NodeView& n);
Results eval_reduce_min(const NodeView& n);
Results eval_reduce_prod(const NodeView& n);

// eval_row.cpp
Results eval_cum_sum(const NodeView& n);
Results eval_cum_prod(const NodeView& n);
Results eval_softmax(const NodeView& n);
Results eval_log_softmax(const NodeView& n);
Results eval_hardmax(const NodeView& n);
Results eval_lp_normalization(const NodeView& n);
Results eval_lrn(const NodeView& n);

// eval_norm.cpp
Results eval_batch_normalization(const NodeView& n);
Results eval_instance_normalization(const NodeView& n);
Results eval_layer_normalization(const NodeView& n);
Results eval_group_normalization(const NodeView& n);
Results eval_rms_normalization(const NodeView& n);
Results eval_mean_variance_normalization(const NodeView& n);

// eval_loss.cpp
Results eval_nll_loss(const NodeView& n);
Results eval_softmax_cross_entropy(const NodeView& n);

// eval_matmul.cpp
Results eval_matmul(const NodeView& n);
Results eval_gemm(const NodeView& n);
Results eval_matmul_integer(const NodeView& n);
Results eval_qlinear_matmul(const NodeView& n);
Results eval_det(const NodeView& n);

// eval_einsum.cpp
Results eval_einsum(const NodeView& n);

// eval_text.cpp
Results eval_string_concat(const NodeView& n);
Results eval_string_split(const NodeView& n);
Results eval_string_normalizer(const NodeView& n);

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

// eval_mask.cpp
Results eval_trilu(const NodeView& n);
Results eval_dropout(const NodeView& n);

}  // namespace tonnx
