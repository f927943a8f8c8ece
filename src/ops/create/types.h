// types.h - types of new tensors.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_arange(TypeNode& n);
void types_full(TypeNode& n);
void types_of_size(TypeNode& n);  // zeros, rand ...: float32 where no `dtype` is given
void types_scalar_tensor(TypeNode& n);
void types_eye(TypeNode& n);
void types_window(TypeNode& n);
void types_new(TypeNode& n);  // new_zeros ...: of the type of `self` where no `dtype` is given
void types_linspace(TypeNode& n);
void types_triangle(TypeNode& n);  // tril_indices, triu_indices
}  // namespace tonnx
