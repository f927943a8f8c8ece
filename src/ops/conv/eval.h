// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_conv(const NodeView& n);
Results eval_conv_transpose(const NodeView& n);
Results eval_conv_integer(const NodeView& n);
Results eval_qlinear_conv(const NodeView& n);
Results eval_deform_conv(const NodeView& n);

}  // namespace tonnx
