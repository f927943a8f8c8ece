// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

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
