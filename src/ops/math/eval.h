// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

// binary_eval.cpp
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

// unary_eval.cpp
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

}  // namespace tonnx
