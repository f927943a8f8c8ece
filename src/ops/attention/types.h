// types.h - the type of what attention gives.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_attention(TypeNode& n);

}  // namespace tonnx
