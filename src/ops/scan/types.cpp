// types.cpp - types of running sums and their kin.
#include "ops/scan/types.h"

#include "ops/reduce/types.h"

namespace tonnx {

void types_accumulate(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, n.given_dtype().value_or(summed_dtype(self->dtype)), self->shape);
}

}  // namespace tonnx
