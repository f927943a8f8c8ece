// types.h - types of what resizing gives.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_upsample(TypeNode& n);

}  // namespace tonnx
