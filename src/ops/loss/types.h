// types.h - types of what losses give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_loss(TypeNode& n);

}  // namespace tonnx
