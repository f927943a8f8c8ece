// older.h - operators of this family in older ones (OnnxOp::in_older).
#pragma once
#include "ops/frame/opset_step.h"

namespace tonnx {

bool trilu_in_older(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
