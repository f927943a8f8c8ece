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

}  // namespace tonnx
