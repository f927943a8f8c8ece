// types.h - types of what functions of numbers give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_angle(TypeNode& n);
DType power_dtype(DType exponent, DType result);  // of 2.0 ** exponent
void types_square(TypeNode& n);

void types_complex(TypeNode& n);  // of two parts
void types_real(TypeNode& n);
void types_view_as_complex(TypeNode& n);
void types_view_as_real(TypeNode& n);

}  // namespace tonnx
