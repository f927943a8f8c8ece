// types.cpp - types of running sums and their kin.
#include "ops/reduce/rows.h"
#include "ops/scan/rows.h"

namespace tonnx {

void types_accumulate(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, n.given_dtype().value_or(summed_dtype(self->dtype)), self->shape);
}

void types_diff(TypeNode& n) {
  const auto times = n.size("n");
  // nothing is put in front where nothing is subtracted
  if (times == Dim(0)) return types_as_self(n);
  const Shape* self = n.shape("self");
  const auto dim = self ? n.dim("dim", self->size()) : std::nullopt;
  const auto shape = [&]() -> MaybeShape {
    if (!dim || !times) return std::nullopt;
    Shape result = *self;
    for (const char* const name : {"prepend", "append"}) {
      if (n.tensor(name) == nullptr) continue;
      const Shape* more = n.shape(name);
      if (more == nullptr || more->size() != result.size()) return std::nullopt;
      result[*dim] = result[*dim] + (*more)[*dim];
    }
    result[*dim] = max(result[*dim] - *times, Dim(0));
    return result;
  };
  n.set(n.joint_dtype({"self", "prepend", "append"}), shape());
}

namespace {

/// The shape of `y`, whose dimension `dim` is one shorter, or gone.
void set_trapezoid(TypeNode& n, bool is_cumulative) {
  const Type* y = n.tensor("y");
  if (y == nullptr) return;
  MaybeShape shape = y->shape;
  const bool has_places = n.args().signature().find_input("x") >= 0;
  const DType dtype = has_places ? n.joint_float({"y", "x"}) : n.joint_float({"y", "dx"});
  if (shape && has_places) {
    const Shape* x = n.shape("x");
    // a row of places is for the last dimension; others are broadcast
    shape = x && x->size() == 1 ? shape : x ? joint_shape(*shape, *x) : std::nullopt;
  }
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim && is_cumulative) (*shape)[*dim] = max((*shape)[*dim] - Dim(1), Dim(0));
  if (dim && !is_cumulative) shape->erase_at(static_cast<int64_t>(*dim));
  n.set(dtype, dim ? shape : std::nullopt);
}

}  // namespace

void types_trapezoid(TypeNode& n) { set_trapezoid(n, false); }
void types_cumulative_trapezoid(TypeNode& n) { set_trapezoid(n, true); }

}  // namespace tonnx
