// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_top_k(const NodeView& n);
Results eval_unique(const NodeView& n);
Results eval_nms(const NodeView& n);

}  // namespace tonnx
