// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_pool1d(TypeNode& n);
void types_pool2d(TypeNode& n);
void types_pool3d(TypeNode& n);
void types_adaptive_pool(TypeNode& n);
void types_unfold(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_max_pool(const NodeView& n);
Results eval_average_pool(const NodeView& n);
Results eval_lp_pool(const NodeView& n);
Results eval_global_average_pool(const NodeView& n);
Results eval_global_max_pool(const NodeView& n);
Results eval_global_lp_pool(const NodeView& n);
Results eval_roi_align(const NodeView& n);
Results eval_max_roi_pool(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_adaptive_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_avg_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_adaptive_avg_pool(const AtenNode& n, OnnxBuilder& onnx);

// open_adaptive_raise.cpp
/// An adaptive pool whose sizes are only known at run time; `reduce` is ReduceMean or ReduceMax.
Value* pooled_at_run_time(const AtenNode& n, OnnxBuilder& onnx, int64_t spatial, const char* reduce);

}  // namespace tonnx
