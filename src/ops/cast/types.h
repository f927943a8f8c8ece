// types.h - types of what conversions give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_to(TypeNode& n);
void types_frexp(TypeNode& n);

}  // namespace tonnx
