// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_grid_sampler(TypeNode& n);
void types_affine_grid(TypeNode& n);
void types_nms(TypeNode& n);
void types_im2col(TypeNode& n);
void types_roi(TypeNode& n);
void types_roi_pool(TypeNode& n);
void types_deform_conv2d(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_grid_sample(const NodeView& n);
Results eval_affine_grid(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_grid_sampler(const AtenNode& n, OnnxBuilder& onnx);
Values raise_affine_grid(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
