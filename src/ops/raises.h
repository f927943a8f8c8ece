// raises.h - raisings that are named in tables of other files than their own.
#pragma once
#include "ops/raising.h"

namespace tonnx {

// aten_conv.cpp
Values raise_conv(const AtenNode& n, OnnxBuilder& onnx);
Values raise_conv_transpose(const AtenNode& n, OnnxBuilder& onnx);
// aten_pool.cpp
Values raise_adaptive_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_avg_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_adaptive_avg_pool(const AtenNode& n, OnnxBuilder& onnx);
// aten_norm.cpp
Values raise_rms_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_layer_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_group_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_instance_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_batch_norm(const AtenNode& n, OnnxBuilder& onnx);
// aten_matmul.cpp
Values raise_matmul(const AtenNode& n, OnnxBuilder& onnx);
Values raise_linear(const AtenNode& n, OnnxBuilder& onnx);
// aten_shape.cpp
Values raise_reshaped(const AtenNode& n, OnnxBuilder& onnx);
// aten_binary.cpp
Values raise_add(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
