// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"
#include "ops/frame/open_node.h"

namespace tonnx {

// Types of what operators give

void types_upsample(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_resize(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_upsample(const AtenNode& n, OnnxBuilder& onnx);

// How nodes follow a size that becomes open

void open_resize(OpenNode& n);

}  // namespace tonnx
