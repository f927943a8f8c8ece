// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_filled(const AtenNode& n, OnnxBuilder& onnx);
Values raise_arange(const AtenNode& n, OnnxBuilder& onnx);
Values raise_eye(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hann_window(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hamming_window(const AtenNode& n, OnnxBuilder& onnx);
Values raise_blackman_window(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
