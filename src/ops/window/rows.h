// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_col2im(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_col2im(const NodeView& n);
Results eval_max_unpool(const NodeView& n);

// The way back

Values raise_col2im(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
