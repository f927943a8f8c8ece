// complex.h - arithmetic of complex numbers as pairs of floats, which their raisings share.
#pragma once
#include "ops/frame/complex_parts.h"

namespace tonnx {

/// The argument as a pair, with 0 as its imaginary part where it is real.
Value* complex_argument(const AtenNode& n, OnnxBuilder& onnx, std::string_view name, DType dtype);
Value* complex_product(Value* a, Value* b, OnnxBuilder& onnx);
Value* complex_quotient(Value* a, Value* b, OnnxBuilder& onnx);
/// By their length and angle.
Value* polar_pair(Value* length, Value* angle, OnnxBuilder& onnx);

// complex_functions.cpp: the function of the node's name
Values raise_complex_function(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_power(const AtenNode& n, OnnxBuilder& onnx);

// complex_raise.cpp
Values raise_complex_binary(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_equal(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_reciprocal(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_square(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_silu(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
