// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"

namespace tonnx {

// Types of what operators give

void types_to(TypeNode& n);
void types_frexp(TypeNode& n);

// The way back, and what raisings share, with those of other families too

Values raise_to(const AtenNode& n, OnnxBuilder& onnx);
Values raise_frexp(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
