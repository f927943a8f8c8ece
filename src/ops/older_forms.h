// older_forms.h - operators that are younger than some opsets, written in older ones (OnnxOp::before_since).
#pragma once
#include "ops/node_view.h"
#include "ops/opset_step.h"

namespace tonnx {

// older_norm.cpp
bool layer_norm_in_older(const NodeView& n, OnnxEdit& edit);
bool group_norm_in_older(const NodeView& n, OnnxEdit& edit);
bool rms_norm_in_older(const NodeView& n, OnnxEdit& edit);
/// Opset 18 to 20 have one scale for each group: the node becomes other nodes.
void down_group_norm(OnnxEdit& edit);
// older_attention.cpp
bool attention_in_older(const NodeView& n, OnnxEdit& edit);
// older_trilu.cpp
bool trilu_in_older(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
