// types.h - the type of what puts windows together.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_col2im(TypeNode& n);

}  // namespace tonnx
