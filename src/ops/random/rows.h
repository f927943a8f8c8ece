// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_multinomial(TypeNode& n);
void types_of_integers(TypeNode& n);  // randint
void types_permutation(TypeNode& n);
void types_native_dropout(TypeNode& n);
void types_normal(TypeNode& n);
void types_dropout_backward(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_dropout(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_dropout(const AtenNode& n, OnnxBuilder& onnx);
Values raise_random(const AtenNode& n, OnnxBuilder& onnx);
Values raise_bernoulli(const AtenNode& n, OnnxBuilder& onnx);
Values raise_multinomial(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
