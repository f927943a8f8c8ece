// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_accumulate(TypeNode& n);
void types_diff(TypeNode& n);
void types_trapezoid(TypeNode& n);
void types_cumulative_trapezoid(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_cum_sum(const NodeView& n);
Results eval_cum_prod(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_cumsum(const AtenNode& n, OnnxBuilder& onnx);
Values raise_cumprod(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
