// types.h - the types of random numbers.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_multinomial(TypeNode& n);
void types_of_integers(TypeNode& n);  // randint
void types_permutation(TypeNode& n);
void types_native_dropout(TypeNode& n);
void types_normal(TypeNode& n);
void types_dropout_backward(TypeNode& n);

}  // namespace tonnx
