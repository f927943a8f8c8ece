// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

// Types of what operators give

void types_native_layer_norm(TypeNode& n);
void types_native_group_norm(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_batch_normalization(const NodeView& n);
Results eval_instance_normalization(const NodeView& n);
Results eval_layer_normalization(const NodeView& n);
Results eval_group_normalization(const NodeView& n);
Results eval_rms_normalization(const NodeView& n);
Results eval_mean_variance_normalization(const NodeView& n);
Results eval_lp_normalization(const NodeView& n);
Results eval_lrn(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_rms_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_layer_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_group_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_instance_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_batch_norm(const AtenNode& n, OnnxBuilder& onnx);

// Operators in older ones (OnnxOp::in_older)

bool layer_norm_in_older(const NodeView& n, OnnxEdit& edit);
bool group_norm_in_older(const NodeView& n, OnnxEdit& edit);
bool rms_norm_in_older(const NodeView& n, OnnxEdit& edit);
/// Opset 18 to 20 have one scale for each group: the node becomes other nodes.
void down_group_norm(OnnxEdit& edit);

}  // namespace tonnx
