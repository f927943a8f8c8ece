// types.h - types of what functions of numbers give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_angle(TypeNode& n);
DType power_dtype(DType exponent, DType result);  // of 2.0 ** exponent
void types_square(TypeNode& n);

}  // namespace tonnx
