// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_batch_normalization(const NodeView& n);
Results eval_instance_normalization(const NodeView& n);
Results eval_layer_normalization(const NodeView& n);
Results eval_group_normalization(const NodeView& n);
Results eval_rms_normalization(const NodeView& n);
Results eval_mean_variance_normalization(const NodeView& n);
Results eval_lp_normalization(const NodeView& n);
Results eval_lrn(const NodeView& n);

}  // namespace tonnx
