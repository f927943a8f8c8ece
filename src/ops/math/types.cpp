// types.cpp - types of what functions of numbers give.
#include "ops/math/types.h"

namespace tonnx {

/// Of complex numbers it is real.
void types_angle(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const DType real = self->dtype == DType::Complex64    ? DType::Float32
                     : self->dtype == DType::Complex128 ? DType::Float64
                     : is_float(self->dtype)            ? self->dtype
                                                        : DType::Float32;
  n.set(real, self->shape);
}

/// self * 2 ** other, and the power is as exact as `other` is.
DType power_dtype(DType exponent, DType result) {
  return is_float(exponent) || is_complex(exponent) ? exponent : result;
}

void types_square(TypeNode& n) {
  const DType dtype = n.dtype("self");
  const Shape* shape = n.shape("self");
  n.set(dtype == DType::Bool ? DType::Int64 : dtype, shape ? MaybeShape(*shape) : std::nullopt);
}

}  // namespace tonnx
