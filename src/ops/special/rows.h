// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// The way back, and what raisings share, with those of other families too

Values raise_ndtri(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
