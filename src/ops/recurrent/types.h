// types.h - types of what recurrent layers give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_lstm(TypeNode& n);
void types_recurrent(TypeNode& n);

}  // namespace tonnx
