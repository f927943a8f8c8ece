// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// complex_raise.cpp
Values raise_complex_binary(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_equal(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_reciprocal(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_square(const AtenNode& n, OnnxBuilder& onnx);
Values raise_complex_silu(const AtenNode& n, OnnxBuilder& onnx);

// fft_raise.cpp
Values raise_fft(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
