// types.h - types of what functions of numbers give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_angle(TypeNode& n);

}  // namespace tonnx
