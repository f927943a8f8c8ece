// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_angle(TypeNode& n);
DType power_dtype(DType exponent, DType result);  // of 2.0 ** exponent
void types_square(TypeNode& n);

void types_complex(TypeNode& n);  // of two parts
void types_real(TypeNode& n);
void types_view_as_complex(TypeNode& n);
void types_view_as_real(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

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

// The way back, and what raisings share, with those of other families too

// binary_raise.cpp
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

// compare_raise.cpp
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

// float64_raise.cpp
/// Acos, Erf ...: one node, or, of float64, what ONNX Runtime has kernels for.
Value* apply_unary(std::string_view op, Value* x, OnnxBuilder& onnx);

// unary_raise.cpp
Value* truncated(Value* x, OnnxBuilder& onnx);
Value* expm1(Value* x, OnnxBuilder& onnx);
Value* log1p(Value* x, OnnxBuilder& onnx);
/// log(1 + exp(x))
Value* softplus(Value* x, OnnxBuilder& onnx);
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
Values raise_reciprocal(const AtenNode& n, OnnxBuilder& onnx);
Values raise_rsqrt(const AtenNode& n, OnnxBuilder& onnx);
Values raise_square(const AtenNode& n, OnnxBuilder& onnx);
Values raise_exp2(const AtenNode& n, OnnxBuilder& onnx);
Values raise_log10(const AtenNode& n, OnnxBuilder& onnx);
Values raise_logical_not(const AtenNode& n, OnnxBuilder& onnx);
Values raise_bitwise_not(const AtenNode& n, OnnxBuilder& onnx);
Values raise_is_float_value(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
