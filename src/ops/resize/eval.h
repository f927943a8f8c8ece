// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_resize(const NodeView& n);

}  // namespace tonnx
