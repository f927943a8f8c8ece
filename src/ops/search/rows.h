// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_unique_dim(TypeNode& n);
void types_unique(TypeNode& n);
void types_argsort(TypeNode& n);
void types_values_and_places(TypeNode& n);  // sort, cummax ...: both as large as `self`
void types_topk(TypeNode& n);
void types_bucketize(TypeNode& n);
void types_isin(TypeNode& n);
void types_bincount(TypeNode& n);
void types_histc(TypeNode& n);
void types_quantile(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_top_k(const NodeView& n);
Results eval_unique(const NodeView& n);
Results eval_nms(const NodeView& n);

// The way back, and what raisings share, with those of other families too

// raise.cpp
Values raise_searchsorted(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unique(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unique_dim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_repeat_interleave(const AtenNode& n, OnnxBuilder& onnx);

// sort_raise.cpp
Values raise_sort(const AtenNode& n, OnnxBuilder& onnx);
Values raise_argsort(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
