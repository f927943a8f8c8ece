// slices.h - places that are those of slices: what `x[:, 2:4] = y` becomes in ONNX.
#pragma once
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

/// ScatterND as it was written, by slices, where its indices are constants; null where they are others.
Value* put_slices(const OnnxNode& n, AtenBuilder& aten);

}  // namespace tonnx
