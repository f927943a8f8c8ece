// types.h - types of what losses give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_loss(TypeNode& n);
void types_loss_of_pairs(TypeNode& n);  // of `self` and `target`, element by element
void types_loss_of_inputs(TypeNode& n);
void types_loss_of_rows(TypeNode& n);

}  // namespace tonnx
