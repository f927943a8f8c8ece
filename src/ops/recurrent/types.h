// types.h - types of what recurrent layers give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_lstm(TypeNode& n);
void types_recurrent(TypeNode& n);
void types_cell(TypeNode& n);  // one step: the states are of the shape of the first ones

}  // namespace tonnx
