// types.h - types of what activations give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_softmax_forward(TypeNode& n);

}  // namespace tonnx
