// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_gather_elements(const NodeView& n);
Results eval_gather_nd(const NodeView& n);
Results eval_scatter_elements(const NodeView& n);
Results eval_scatter_nd(const NodeView& n);
Results eval_tensor_scatter(const NodeView& n);
Results eval_one_hot(const NodeView& n);
Results eval_non_zero(const NodeView& n);
Results eval_compress(const NodeView& n);
Results eval_reverse_sequence(const NodeView& n);

}  // namespace tonnx
