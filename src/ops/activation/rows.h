// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_softmax_forward(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_softmax(const NodeView& n);
Results eval_log_softmax(const NodeView& n);
Results eval_hardmax(const NodeView& n);

// The way back, and what raisings share, with those of other families too

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
