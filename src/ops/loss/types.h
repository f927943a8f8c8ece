// types.h - types of what losses give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_loss(TypeNode& n);
void types_loss_of_pairs(TypeNode& n);  // of `self` and `target`, element by element
void types_cross_entropy(TypeNode& n);
void types_loss_of_differences(TypeNode& n);  // the same, of both types together
void types_bce_with_logits(TypeNode& n);
void types_cosine_embedding_loss(TypeNode& n);
void types_triplet_margin_loss(TypeNode& n);
void types_loss_of_inputs(TypeNode& n);
void types_loss_of_rows(TypeNode& n);

}  // namespace tonnx
