// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include <string>

#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_loss(TypeNode& n);
void types_loss_of_pairs(TypeNode& n);  // of `self` and `target`, element by element
void types_cross_entropy(TypeNode& n);
void types_loss_of_differences(TypeNode& n);  // the same, of both types together
void types_bce_with_logits(TypeNode& n);
void types_cosine_embedding_loss(TypeNode& n);
void types_triplet_margin_loss(TypeNode& n);
void types_loss_of_inputs(TypeNode& n);
void types_loss_of_rows(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_nll_loss(const NodeView& n);
Results eval_softmax_cross_entropy(const NodeView& n);

// The way back, and what raisings share, with those of other families too

// nll_raise.cpp
Values raise_nll_loss(const AtenNode& n, OnnxBuilder& onnx);
Values raise_cross_entropy_loss(const AtenNode& n, OnnxBuilder& onnx);

// raise.cpp
/// The mean or the sum of the elements, as the argument `reduction` says.
Values reduced_loss(const AtenNode& n, OnnxBuilder& onnx, Value* loss);

// How generated code spells them

class Emission;

/// `F.mse_loss(x, target, reduction="sum")`: tensors that must be given come first, all others by their names.
std::string emit_reduced(const Emission& e);

}  // namespace tonnx
