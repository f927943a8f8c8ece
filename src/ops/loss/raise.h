// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// nll_raise.cpp
Values raise_nll_loss(const AtenNode& n, OnnxBuilder& onnx);
Values raise_cross_entropy_loss(const AtenNode& n, OnnxBuilder& onnx);

// raise.cpp
/// The mean or the sum of the elements, as the argument `reduction` says.
Values reduced_loss(const AtenNode& n, OnnxBuilder& onnx, Value* loss);

}  // namespace tonnx
