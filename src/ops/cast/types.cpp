// types.cpp - types of what conversions give.
#include "ops/cast/rows.h"

namespace tonnx {

void types_to(TypeNode& n) {
  const Type* other = n.tensor("other");
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(other ? other->dtype : n.given_dtype().value_or(self->dtype), self->shape);
}

void types_frexp(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, self->dtype, self->shape);
  n.set(1, DType::Int32, self->shape);
}

}  // namespace tonnx
