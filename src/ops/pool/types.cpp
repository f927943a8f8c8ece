// types.cpp - types of what pools and windows give.
#include "ops/pool/rows.h"

namespace tonnx {
namespace {

void pool(TypeNode& n, size_t spatial) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const Shape kernel = n.list("kernel_size"), padding = n.list("padding"), dilation = n.list("dilation");
  Shape stride = n.list("stride");
  if (stride.empty()) stride = kernel;
  MaybeShape shape = self->shape;
  if (shape && shape->size() > spatial && !kernel.empty()) {
    const bool ceils = n.args().flag("ceil_mode");
    for (size_t i = 0; i < spatial; ++i) {
      Dim& size = (*shape)[shape->size() - spatial + i];
      const Dim s = size_at(stride, i, 1), p = size_at(padding, i, 0);
      const Dim span = size + p * Dim(2) - size_at(dilation, i, 1) * (size_at(kernel, i, 1) - Dim(1)) - Dim(1);
      Dim count = (ceils ? ceil_div(span, s) : floor_div(span, s)) + Dim(1);
      // the last window must begin inside the input or its left padding
      if (ceils && count.is_constant() && size.is_constant() && s.is_constant() && p.is_constant() &&
          *((count - Dim(1)) * s).constant() >= *(size + p).constant())
        count = count - Dim(1);
      size = count;
    }
  } else {
    shape = std::nullopt;
  }
  n.set(0, self->dtype, shape);
  n.set(1, DType::Int64, shape);
}

}  // namespace

void types_pool1d(TypeNode& n) { pool(n, 1); }
void types_pool2d(TypeNode& n) { pool(n, 2); }
void types_pool3d(TypeNode& n) { pool(n, 3); }

void types_adaptive_pool(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  MaybeShape shape = self->shape;
  const auto sizes = n.sizes("output_size");
  if (shape && sizes && sizes->size() <= shape->size()) {
    for (size_t i = 0; i < sizes->size(); ++i) (*shape)[shape->size() - sizes->size() + i] = (*sizes)[i];
  } else {
    shape = std::nullopt;
  }
  n.set(0, self->dtype, shape);
  n.set(1, DType::Int64, shape);
}

void types_unfold(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dimension", shape.size());
    const auto size = n.size("size"), step = n.size("step");
    if (!dim || !size || !step || step->is(0)) return std::nullopt;
    shape[*dim] = floor_div(shape[*dim] - *size, *step) + Dim(1);
    shape.push_back(*size);
    return shape;
  });
}

}  // namespace tonnx
