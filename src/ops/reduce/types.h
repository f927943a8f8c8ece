// types.h - types of what reductions give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

/// Integers are added and multiplied as int64.
DType summed_dtype(DType dtype);

void types_sum(TypeNode& n);
void types_mean(TypeNode& n);
void types_truth(TypeNode& n);
void types_place(TypeNode& n);
void types_extreme(TypeNode& n);
void types_both_extremes(TypeNode& n);

}  // namespace tonnx
