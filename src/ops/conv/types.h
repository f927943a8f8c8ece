// types.h - types of what convolutions give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_conv(TypeNode& n);
void types_conv_transpose(TypeNode& n);

}  // namespace tonnx
