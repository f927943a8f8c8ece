// types.cpp - types of what transforms and complex numbers give.
#include "ops/signal/types.h"

namespace tonnx {
namespace {

enum class SpectrumKind { ToComplex, HalfOfReal, ToReal };

void transform(TypeNode& n, SpectrumKind kind) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const bool is_double = self->dtype == DType::Float64 || self->dtype == DType::Complex128;
  const bool to_real = kind == SpectrumKind::ToReal;
  MaybeShape shape = self->shape;
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim) {
    Dim& size = (*shape)[*dim];
    const auto length = n.args().has("n") ? n.size("n") : to_real ? std::optional((size - Dim(1)) * Dim(2)) : size;
    size = !length ? n.fresh() : kind == SpectrumKind::HalfOfReal ? floor_div(*length, Dim(2)) + Dim(1) : *length;
  }
  const DType complex = is_double ? DType::Complex128 : DType::Complex64;
  if (shape && !dim) {  // only the run tells which
    for (Dim& size : *shape) size = n.fresh();
  }
  n.set(to_real ? (is_double ? DType::Float64 : DType::Float32) : complex, shape);
}

}  // namespace

void types_fft(TypeNode& n) { transform(n, SpectrumKind::ToComplex); }
void types_rfft(TypeNode& n) { transform(n, SpectrumKind::HalfOfReal); }
void types_irfft(TypeNode& n) { transform(n, SpectrumKind::ToReal); }

void types_view_as_complex(TypeNode& n) {
  reshape_self(n, [](Shape shape) -> MaybeShape {
    if (!shape.empty()) shape.pop_back();
    return shape;
  });
  n.found()[0].dtype = n.dtype("self") == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

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

}  // namespace tonnx
