// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_nll_loss(const NodeView& n);
Results eval_softmax_cross_entropy(const NodeView& n);

}  // namespace tonnx
