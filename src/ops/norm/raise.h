// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_rms_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_layer_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_group_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_instance_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_batch_norm(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
