// types.h - types of what reductions give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

/// Integers are added and multiplied as int64.
DType summed_dtype(DType dtype);

void types_sum(TypeNode& n);
void types_mean(TypeNode& n);           // the element type stays
void types_logsumexp(TypeNode& n);      // float32 for integers
void types_truth(TypeNode& n);          // all, any
void types_place(TypeNode& n);          // argmax, counts: int64
void types_extreme(TypeNode& n);        // the values, and their places where there is a dimension
void types_both_extremes(TypeNode& n);  // aminmax
void types_with_mean(TypeNode& n);      // var_mean, std_mean
void types_distance(TypeNode& n);
void types_summed_to(TypeNode& n);

}  // namespace tonnx
