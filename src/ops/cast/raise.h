// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_to(const AtenNode& n, OnnxBuilder& onnx);
Values raise_frexp(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
