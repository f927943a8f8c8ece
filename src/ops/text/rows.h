// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_string_concat(const NodeView& n);
Results eval_string_split(const NodeView& n);
Results eval_string_normalizer(const NodeView& n);

}  // namespace tonnx
