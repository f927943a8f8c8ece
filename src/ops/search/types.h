// types.h - types of what sorting and searching give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_unique_dim(TypeNode& n);
void types_unique(TypeNode& n);
void types_argsort(TypeNode& n);
void types_values_and_places(TypeNode& n);  // sort, cummax ...: both as large as `self`
void types_topk(TypeNode& n);
void types_bucketize(TypeNode& n);
void types_isin(TypeNode& n);
void types_bincount(TypeNode& n);
void types_histc(TypeNode& n);
void types_quantile(TypeNode& n);

}  // namespace tonnx
