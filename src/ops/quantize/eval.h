// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_quantize(const NodeView& n);
Results eval_dequantize(const NodeView& n);
Results eval_dynamic_quantize(const NodeView& n);

}  // namespace tonnx
