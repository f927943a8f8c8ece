// types.h - types of what is picked by indices.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_index_select(TypeNode& n);
void types_gather(TypeNode& n);
void types_take_along_dim(TypeNode& n);
void types_masked_scatter(TypeNode& n);
void types_index(TypeNode& n);
void types_nonzero(TypeNode& n);
void types_masked_select(TypeNode& n);
void types_embedding(TypeNode& n);
void types_embedding_bag(TypeNode& n);
void types_one_hot(TypeNode& n);
void types_take(TypeNode& n);
void types_nonzero_static(TypeNode& n);

}  // namespace tonnx
