// raises.h - raisings that are named in tables of other files than their own.
#pragma once
#include "ops/raising.h"

namespace tonnx {

// aten_conv.cpp
Values raise_conv(const AtenNode& n, OnnxBuilder& onnx);
Values raise_conv_transpose(const AtenNode& n, OnnxBuilder& onnx);
// aten_pool.cpp
Values raise_adaptive_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_avg_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_adaptive_avg_pool(const AtenNode& n, OnnxBuilder& onnx);
// aten_norm.cpp
Values raise_rms_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_layer_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_group_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_instance_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_batch_norm(const AtenNode& n, OnnxBuilder& onnx);
// aten_attention.cpp
Values raise_attention(const AtenNode& n, OnnxBuilder& onnx);
// aten_matmul.cpp
Values raise_matmul(const AtenNode& n, OnnxBuilder& onnx);
Values raise_linear(const AtenNode& n, OnnxBuilder& onnx);
// aten_resize.cpp
Values raise_upsample(const AtenNode& n, OnnxBuilder& onnx);
// aten_grid.cpp
Values raise_col2im(const AtenNode& n, OnnxBuilder& onnx);
Values raise_grid_sampler(const AtenNode& n, OnnxBuilder& onnx);
Values raise_affine_grid(const AtenNode& n, OnnxBuilder& onnx);
// aten_recurrent.cpp
Values raise_recurrent(const AtenNode& n, OnnxBuilder& onnx);
// aten_fft.cpp
Values raise_fft(const AtenNode& n, OnnxBuilder& onnx);
// aten_linalg.cpp
Values raise_solve_triangular(const AtenNode& n, OnnxBuilder& onnx);
Values raise_det(const AtenNode& n, OnnxBuilder& onnx);
// aten_einsum.cpp
Values raise_einsum(const AtenNode& n, OnnxBuilder& onnx);
// aten_shape.cpp
Values raise_reshaped(const AtenNode& n, OnnxBuilder& onnx);
// aten_float64.cpp
/// Acos, Erf ...: one node, or, of float64, what ONNX Runtime has kernels for.
Value* apply_unary(std::string_view op, Value* x, OnnxBuilder& onnx);
// aten_unary.cpp
Value* truncated(Value* x, OnnxBuilder& onnx);
Value* expm1(Value* x, OnnxBuilder& onnx);
Value* log1p(Value* x, OnnxBuilder& onnx);
Value* arc_tangent(Value* y, Value* x, OnnxBuilder& onnx);
/// The magnitude, which is not negative, with the sign of another.
Value* signed_as(Value* magnitude, Value* sign, OnnxBuilder& onnx);
Values raise_math(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_math(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_math(n, onnx, Op.value);
}
Values raise_neg(const AtenNode& n, OnnxBuilder& onnx);
Values raise_abs(const AtenNode& n, OnnxBuilder& onnx);
Values raise_rounded(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_rounded(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_rounded(n, onnx, Op.value);
}
Values raise_trunc(const AtenNode& n, OnnxBuilder& onnx);
Values raise_sign(const AtenNode& n, OnnxBuilder& onnx);
Values raise_rsqrt(const AtenNode& n, OnnxBuilder& onnx);
Values raise_square(const AtenNode& n, OnnxBuilder& onnx);
Values raise_exp2(const AtenNode& n, OnnxBuilder& onnx);
Values raise_log10(const AtenNode& n, OnnxBuilder& onnx);
Values raise_logical_not(const AtenNode& n, OnnxBuilder& onnx);
Values raise_bitwise_not(const AtenNode& n, OnnxBuilder& onnx);
Values raise_is_float_value(const AtenNode& n, OnnxBuilder& onnx);
// aten_binary.cpp
Values raise_add(const AtenNode& n, OnnxBuilder& onnx);
Values raise_sub(const AtenNode& n, OnnxBuilder& onnx);
Values raise_rsub(const AtenNode& n, OnnxBuilder& onnx);
Values raise_mul(const AtenNode& n, OnnxBuilder& onnx);
Values raise_div(const AtenNode& n, OnnxBuilder& onnx);
Values raise_remainder(const AtenNode& n, OnnxBuilder& onnx);
Values raise_fmod(const AtenNode& n, OnnxBuilder& onnx);
Values raise_pow(const AtenNode& n, OnnxBuilder& onnx);
Values raise_maximum(const AtenNode& n, OnnxBuilder& onnx);
Values raise_minimum(const AtenNode& n, OnnxBuilder& onnx);
// aten_complex.cpp
Values raise_complex_binary(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_silu(const AtenNode& n, OnnxBuilder& onnx);
// aten_compare.cpp
Values raise_comparison(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_compare(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_comparison(n, onnx, Op.value);
}
Values raise_ne(const AtenNode& n, OnnxBuilder& onnx);
Values raise_logical(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_logical(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_logical(n, onnx, Op.value);
}
Values raise_bitwise(const AtenNode& n, OnnxBuilder& onnx);
Values raise_shift(const AtenNode& n, OnnxBuilder& onnx);
Values raise_where(const AtenNode& n, OnnxBuilder& onnx);
Values raise_clamp(const AtenNode& n, OnnxBuilder& onnx);
Values raise_nan_to_num(const AtenNode& n, OnnxBuilder& onnx);
// aten_cast.cpp
Values raise_to(const AtenNode& n, OnnxBuilder& onnx);
Values raise_frexp(const AtenNode& n, OnnxBuilder& onnx);
// aten_activation.cpp
Value* softplus(Value* x, OnnxBuilder& onnx);
Value* leaky_relu(Value* x, double slope, OnnxBuilder& onnx);
Values raise_celu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_elu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_gelu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hardshrink(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hardsigmoid(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hardswish(const AtenNode& n, OnnxBuilder& onnx);
Values raise_leaky_relu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_mish(const AtenNode& n, OnnxBuilder& onnx);
Values raise_prelu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_relu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_relu6(const AtenNode& n, OnnxBuilder& onnx);
Values raise_selu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_silu(const AtenNode& n, OnnxBuilder& onnx);
Values raise_softplus(const AtenNode& n, OnnxBuilder& onnx);
Values raise_softshrink(const AtenNode& n, OnnxBuilder& onnx);
Values raise_threshold(const AtenNode& n, OnnxBuilder& onnx);
Values raise_softmax(const AtenNode& n, OnnxBuilder& onnx);
// aten_reduce.cpp
Values raise_reduction(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_reduce(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_reduction(n, onnx, Op.value);
}
Values raise_mean(const AtenNode& n, OnnxBuilder& onnx);
Values raise_any(const AtenNode& n, OnnxBuilder& onnx);
Values raise_all(const AtenNode& n, OnnxBuilder& onnx);
Values raise_logsumexp(const AtenNode& n, OnnxBuilder& onnx);
Values raise_vector_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_arg_extreme(const AtenNode& n, OnnxBuilder& onnx);
Values raise_extreme_dim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_aminmax(const AtenNode& n, OnnxBuilder& onnx);
Values raise_var(const AtenNode& n, OnnxBuilder& onnx);
// aten_scan.cpp
Values raise_cumsum(const AtenNode& n, OnnxBuilder& onnx);
Values raise_cumprod(const AtenNode& n, OnnxBuilder& onnx);
// aten_random.cpp
Values raise_dropout(const AtenNode& n, OnnxBuilder& onnx);
Values raise_random(const AtenNode& n, OnnxBuilder& onnx);
Values raise_bernoulli(const AtenNode& n, OnnxBuilder& onnx);
Values raise_multinomial(const AtenNode& n, OnnxBuilder& onnx);
// aten_loss.cpp
/// The mean or the sum of the elements, as the argument `reduction` says.
Values reduced_loss(const AtenNode& n, OnnxBuilder& onnx, Value* loss);
// aten_nll.cpp
Values raise_nll_loss(const AtenNode& n, OnnxBuilder& onnx);
Values raise_cross_entropy_loss(const AtenNode& n, OnnxBuilder& onnx);
// aten_distance.cpp
/// The p-norm of d + eps along the last dimension.
Value* length_of(Value* d, double p, double eps, bool keepdim, OnnxBuilder& onnx);
Values raise_cdist(const AtenNode& n, OnnxBuilder& onnx);
// aten_gamma.cpp
Values raise_ndtri(const AtenNode& n, OnnxBuilder& onnx);
// aten_create.cpp
Values raise_filled(const AtenNode& n, OnnxBuilder& onnx);
Values raise_arange(const AtenNode& n, OnnxBuilder& onnx);
Values raise_eye(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hann_window(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hamming_window(const AtenNode& n, OnnxBuilder& onnx);
Values raise_blackman_window(const AtenNode& n, OnnxBuilder& onnx);
Values raise_expand(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unsqueeze(const AtenNode& n, OnnxBuilder& onnx);
Values raise_squeeze(const AtenNode& n, OnnxBuilder& onnx);
Values raise_permute(const AtenNode& n, OnnxBuilder& onnx);
Values raise_transpose(const AtenNode& n, OnnxBuilder& onnx);
Values raise_matrix_transpose(const AtenNode& n, OnnxBuilder& onnx);
Values raise_movedim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_view_dtype(const AtenNode& n, OnnxBuilder& onnx);
Values raise_repeat(const AtenNode& n, OnnxBuilder& onnx);
Values raise_flip(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unfold(const AtenNode& n, OnnxBuilder& onnx);
// aten_binary.cpp
Values raise_add(const AtenNode& n, OnnxBuilder& onnx);
// aten_slice.cpp
Values raise_slice(const AtenNode& n, OnnxBuilder& onnx);
Values raise_select(const AtenNode& n, OnnxBuilder& onnx);
Values raise_narrow(const AtenNode& n, OnnxBuilder& onnx);
Values raise_split_with_sizes(const AtenNode& n, OnnxBuilder& onnx);
Values raise_split(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unbind(const AtenNode& n, OnnxBuilder& onnx);
// aten_join.cpp
Values raise_cat(const AtenNode& n, OnnxBuilder& onnx);
Values raise_stack(const AtenNode& n, OnnxBuilder& onnx);
// aten_pad.cpp
Values raise_constant_pad(const AtenNode& n, OnnxBuilder& onnx);
Values raise_pad(const AtenNode& n, OnnxBuilder& onnx);
Values raise_pixel_shuffle(const AtenNode& n, OnnxBuilder& onnx);
Values raise_pixel_unshuffle(const AtenNode& n, OnnxBuilder& onnx);
// aten_index.cpp
Values raise_index(const AtenNode& n, OnnxBuilder& onnx);
Values raise_index_select(const AtenNode& n, OnnxBuilder& onnx);
Values raise_gather(const AtenNode& n, OnnxBuilder& onnx);
Values raise_embedding(const AtenNode& n, OnnxBuilder& onnx);
Values raise_nonzero(const AtenNode& n, OnnxBuilder& onnx);
// aten_index_put.cpp
Values raise_index_put(const AtenNode& n, OnnxBuilder& onnx);
Values raise_masked_fill(const AtenNode& n, OnnxBuilder& onnx);
Values raise_masked_scatter(const AtenNode& n, OnnxBuilder& onnx);
// aten_diagonal.cpp
Values raise_tril(const AtenNode& n, OnnxBuilder& onnx);
Values raise_triu(const AtenNode& n, OnnxBuilder& onnx);
// aten_scatter.cpp
Values raise_scatter(const AtenNode& n, OnnxBuilder& onnx);
Values raise_scatter_add(const AtenNode& n, OnnxBuilder& onnx);
Values raise_scatter_reduce(const AtenNode& n, OnnxBuilder& onnx);
Values raise_index_add(const AtenNode& n, OnnxBuilder& onnx);
Values raise_index_fill(const AtenNode& n, OnnxBuilder& onnx);
// aten_sort.cpp
Values raise_sort(const AtenNode& n, OnnxBuilder& onnx);
Values raise_argsort(const AtenNode& n, OnnxBuilder& onnx);
// aten_search.cpp
Values raise_searchsorted(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unique(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unique_dim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_repeat_interleave(const AtenNode& n, OnnxBuilder& onnx);
// aten_size.cpp
Values raise_number_floor_div(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_mod(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_neg(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_true_div(const AtenNode& n, OnnxBuilder& onnx);
Values raise_sym_size(const AtenNode& n, OnnxBuilder& onnx);
Values raise_sym_numel(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_op(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_number(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_number_op(n, onnx, Op.value);
}
Values raise_number_compare(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_relation(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_number_compare(n, onnx, Op.value);
}
Values raise_rounded_size(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_integer(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_rounded_size(n, onnx, Op.value);
}

}  // namespace tonnx
