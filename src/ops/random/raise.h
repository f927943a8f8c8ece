// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_dropout(const AtenNode& n, OnnxBuilder& onnx);
Values raise_random(const AtenNode& n, OnnxBuilder& onnx);
Values raise_bernoulli(const AtenNode& n, OnnxBuilder& onnx);
Values raise_multinomial(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
