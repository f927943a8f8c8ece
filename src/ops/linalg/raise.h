// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// distance_raise.cpp
/// The p-norm of d + eps along the last dimension.
Value* length_of(Value* d, double p, double eps, bool keepdim, OnnxBuilder& onnx);
Values raise_cdist(const AtenNode& n, OnnxBuilder& onnx);

// solve_raise.cpp
Values raise_solve_triangular(const AtenNode& n, OnnxBuilder& onnx);
Values raise_det(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
