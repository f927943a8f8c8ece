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

/// Along some dimensions, or all; the last of them has half of a spectrum where one side is real.
void types_fft_of_many(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const std::string_view name = n.node().op.view();
  const bool to_real = name.starts_with("fft_irfft"), of_real = name.starts_with("fft_rfft");
  const bool is_double = self->dtype == DType::Float64 || self->dtype == DType::Complex128;
  const DType dtype = to_real     ? (is_double ? DType::Float64 : DType::Float32)
                      : is_double ? DType::Complex128
                                  : DType::Complex64;
  if (!self->shape || self->shape->empty() || name.starts_with("fft_hfft") || name.starts_with("fft_ihfft"))
    return n.set(dtype, std::nullopt);
  Shape shape = *self->shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const Shape sizes = n.list("s"), given = n.list("dim");
  std::vector<size_t> dims;
  for (const Dim& dim : given) {
    const auto at = dim.constant();
    if (!at || *at < -rank || *at >= rank) return n.set(dtype, std::nullopt);
    dims.push_back(static_cast<size_t>(*at < 0 ? *at + rank : *at));
  }
  const size_t count = !sizes.empty() ? std::min(sizes.size(), shape.size()) : shape.size();
  for (size_t i = shape.size() - count; given.empty() && i < shape.size(); ++i) dims.push_back(i);
  if (!sizes.empty() && sizes.size() != dims.size()) return n.set(dtype, std::nullopt);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is(-1)) shape[dims[i]] = sizes[i];
  }
  Dim& last = shape[dims.back()];
  if (of_real) last = floor_div(last, Dim(2)) + Dim(1);
  if (to_real && (sizes.empty() || sizes.back().is(-1))) last = (last - Dim(1)) * Dim(2);
  n.set(dtype, shape);
}

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
