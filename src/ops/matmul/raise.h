// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// einsum_raise.cpp
Values raise_einsum(const AtenNode& n, OnnxBuilder& onnx);

// raise.cpp
Values raise_matmul(const AtenNode& n, OnnxBuilder& onnx);
Values raise_linear(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
