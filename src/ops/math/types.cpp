// types.cpp - types of what functions of numbers give.
#include "ops/math/rows.h"

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

// Complex numbers

namespace {

DType real_part(DType dtype) {
  return dtype == DType::Complex128 ? DType::Float64 : dtype == DType::Complex64 ? DType::Float32 : dtype;
}

}  // namespace

void types_real(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self != nullptr) n.set(real_part(self->dtype), self->shape);
}

void types_view_as_real(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  MaybeShape shape = self->shape;
  if (shape) shape->push_back(Dim(2));
  n.set(real_part(self->dtype), shape);
}

void types_view_as_complex(TypeNode& n) {
  reshape_self(n, [](Shape shape) -> MaybeShape {
    if (!shape.empty()) shape.pop_back();
    return shape;
  });
  n.found()[0].dtype = n.dtype("self") == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

void types_complex(TypeNode& n) {
  std::vector<const Type*> parts;
  for (const char* const name : {"real", "imag", "abs", "angle"}) {
    if (n.args().signature().find_input(name) >= 0) parts.push_back(n.tensor(name));
  }
  if (parts.size() != 2 || parts[0] == nullptr || parts[1] == nullptr) return;
  const bool is_known = parts[0]->shape && parts[1]->shape;
  n.set(parts[0]->dtype == DType::Float64 ? DType::Complex128 : DType::Complex64,
        is_known ? joint_shape(*parts[0]->shape, *parts[1]->shape) : std::nullopt);
}

}  // namespace tonnx
