// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_conv(TypeNode& n);
void types_conv_transpose(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_conv(const NodeView& n);
Results eval_conv_transpose(const NodeView& n);
Results eval_conv_integer(const NodeView& n);
Results eval_qlinear_conv(const NodeView& n);
Results eval_deform_conv(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_conv(const AtenNode& n, OnnxBuilder& onnx);
Values raise_conv_transpose(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
