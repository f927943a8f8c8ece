// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_grid_sampler(const AtenNode& n, OnnxBuilder& onnx);
Values raise_affine_grid(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
