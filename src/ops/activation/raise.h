// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

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

}  // namespace tonnx
