// types.h - types of running sums and their kin.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_accumulate(TypeNode& n);
void types_diff(TypeNode& n);
}  // namespace tonnx
