// types.h - types of what norms give beside their result: means, and the inverse of deviations.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_native_layer_norm(TypeNode& n);
void types_native_group_norm(TypeNode& n);

}  // namespace tonnx
