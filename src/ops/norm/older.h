// older.h - operators of this family in older ones (OnnxOp::in_older).
#pragma once
#include "ops/frame/opset_step.h"

namespace tonnx {

bool layer_norm_in_older(const NodeView& n, OnnxEdit& edit);
bool group_norm_in_older(const NodeView& n, OnnxEdit& edit);
bool rms_norm_in_older(const NodeView& n, OnnxEdit& edit);
/// Opset 18 to 20 have one scale for each group: the node becomes other nodes.
void down_group_norm(OnnxEdit& edit);

}  // namespace tonnx
