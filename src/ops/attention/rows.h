// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

// Types of what operators give

void types_attention(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_attention(const NodeView& n);
Results eval_linear_attention(const NodeView& n);
Results eval_rotary_embedding(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_attention(const AtenNode& n, OnnxBuilder& onnx);

// Operators in older ones (OnnxOp::in_older)

bool attention_in_older(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
