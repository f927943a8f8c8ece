// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_reduce_l1(const NodeView& n);
Results eval_reduce_l2(const NodeView& n);
Results eval_reduce_log_sum(const NodeView& n);
Results eval_reduce_log_sum_exp(const NodeView& n);
Results eval_reduce_sum_square(const NodeView& n);
Results eval_arg_max(const NodeView& n);
Results eval_arg_min(const NodeView& n);
Results eval_reduce_sum(const NodeView& n);
Results eval_reduce_mean(const NodeView& n);
Results eval_reduce_max(const NodeView& n);
Results eval_reduce_min(const NodeView& n);
Results eval_reduce_prod(const NodeView& n);

}  // namespace tonnx
