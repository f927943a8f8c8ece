// types.h - types of running sums and their kin.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_accumulate(TypeNode& n);
void types_diff(TypeNode& n);
void types_trapezoid(TypeNode& n);
void types_cumulative_trapezoid(TypeNode& n);

}  // namespace tonnx
