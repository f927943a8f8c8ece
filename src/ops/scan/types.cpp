// types.cpp - types of running sums and their kin.
#include "ops/scan/types.h"

#include "ops/reduce/types.h"

namespace tonnx {

void types_accumulate(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, n.given_dtype().value_or(summed_dtype(self->dtype)), self->shape);
}

void types_diff(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    const auto times = n.size("n");
    if (!dim || !times) return std::nullopt;
    for (const char* const name : {"prepend", "append"}) {
      if (n.tensor(name) == nullptr) continue;
      const Shape* more = n.shape(name);
      if (more == nullptr || more->size() != shape.size()) return std::nullopt;
      shape[*dim] = shape[*dim] + (*more)[*dim];
    }
    const Dim size = shape[*dim] - *times;
    const auto known = size.constant();
    shape[*dim] = known && *known < 0 ? Dim(0) : size;
    return shape;
  });
}

namespace {

/// The shape of `y`, whose dimension `dim` is one shorter, or gone.
void set_trapezoid(TypeNode& n, bool is_cumulative) {
  const Type* y = n.tensor("y");
  if (y == nullptr || !is_float(y->dtype)) return;
  MaybeShape shape = y->shape;
  if (shape && n.args().signature().find_input("x") >= 0) {
    const Shape* x = n.shape("x");
    // a row of places is for the last dimension; others are broadcast
    shape = x && x->size() == 1 ? shape : x ? joint_shape(*shape, *x) : std::nullopt;
  }
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim && is_cumulative) (*shape)[*dim] = max((*shape)[*dim] - Dim(1), Dim(0));
  if (dim && !is_cumulative) shape->erase_at(static_cast<int64_t>(*dim));
  n.set(y->dtype, dim ? shape : std::nullopt);
}

}  // namespace

void types_trapezoid(TypeNode& n) { set_trapezoid(n, false); }
void types_cumulative_trapezoid(TypeNode& n) { set_trapezoid(n, true); }

}  // namespace tonnx
