// types.h - types of what pools and windows give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_pool1d(TypeNode& n);
void types_pool2d(TypeNode& n);
void types_pool3d(TypeNode& n);
void types_adaptive_pool(TypeNode& n);
void types_unfold(TypeNode& n);

}  // namespace tonnx
