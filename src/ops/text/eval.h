// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_string_concat(const NodeView& n);
Results eval_string_split(const NodeView& n);
Results eval_string_normalizer(const NodeView& n);

}  // namespace tonnx
