// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_max_pool(const NodeView& n);
Results eval_average_pool(const NodeView& n);
Results eval_lp_pool(const NodeView& n);
Results eval_global_average_pool(const NodeView& n);
Results eval_global_max_pool(const NodeView& n);
Results eval_global_lp_pool(const NodeView& n);
Results eval_roi_align(const NodeView& n);
Results eval_max_roi_pool(const NodeView& n);

}  // namespace tonnx
