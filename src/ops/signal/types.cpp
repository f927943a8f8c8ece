// types.cpp - types of what transforms give.
#include "ops/signal/rows.h"

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
  const bool to_real = name.starts_with("fft_irfft") || name.starts_with("fft_hfft");
  const bool of_real = name.starts_with("fft_rfft") || name.starts_with("fft_ihfft");
  const bool is_double = self->dtype == DType::Float64 || self->dtype == DType::Complex128;
  const DType dtype = to_real     ? (is_double ? DType::Float64 : DType::Float32)
                      : is_double ? DType::Complex128
                                  : DType::Complex64;
  if (!self->shape || self->shape->empty()) return n.set(dtype, std::nullopt);
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

namespace {

/// How many elements lie between two frames; nothing where the length of a frame is not known.
std::optional<int64_t> hop_between(const TypeNode& n) {
  const auto length = n.args().find_int("n_fft");
  const auto hop = n.args().has("hop_length") ? n.args().find_int("hop_length") : length ? *length / 4 : length;
  return length && *length > 0 && hop && *hop > 0 ? hop : std::nullopt;
}

}  // namespace

void types_stft(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const bool is_double = self->dtype == DType::Float64 || self->dtype == DType::Complex128;
  const bool gives_complex = n.args().flag("return_complex");
  const DType dtype = gives_complex ? (is_double ? DType::Complex128 : DType::Complex64)
                                    : (is_double ? DType::Float64 : DType::Float32);
  const auto hop = hop_between(n);
  if (!self->shape || self->shape->empty() || self->shape->size() > 2 || !hop) return n.set(dtype, std::nullopt);
  const int64_t length = *n.args().find_int("n_fft");
  const bool is_centred = n.args().signature().find_input("center") >= 0 && n.args().flag("center");
  const bool is_half = n.args().has("onesided") ? n.args().flag("onesided") : !is_complex(self->dtype);
  Shape shape = *self->shape;
  const Dim whole = shape.back() + Dim(is_centred ? length / 2 * 2 : 0);
  shape.back() = Dim(is_half ? length / 2 + 1 : length);
  shape.push_back(floor_div(whole - Dim(length), Dim(*hop)) + Dim(1));
  if (!gives_complex) shape.push_back(Dim(2));
  n.set(dtype, shape);
}

void types_istft(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const bool is_double = self->dtype == DType::Float64 || self->dtype == DType::Complex128;
  const DType dtype = n.args().flag("return_complex") ? (is_double ? DType::Complex128 : DType::Complex64)
                                                      : (is_double ? DType::Float64 : DType::Float32);
  const auto hop = hop_between(n);
  if (!self->shape || self->shape->size() < 2 || !is_complex(self->dtype) || !hop) return n.set(dtype, std::nullopt);
  const int64_t length = *n.args().find_int("n_fft");
  Shape shape = *self->shape;
  const Dim frames = shape.back();
  shape.pop_back();
  shape.back() = (frames - Dim(1)) * Dim(*hop) + Dim(n.args().flag("center") ? length % 2 : length);
  if (n.args().has("length")) shape.back() = n.size("length").value_or(n.fresh());
  n.set(dtype, shape);
}

}  // namespace tonnx
