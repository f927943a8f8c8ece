// types.cpp - types of what losses give.
#include "ops/loss/types.h"

namespace tonnx {

void types_loss(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const Shape* target = n.shape("target");
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(self->dtype, Shape());
  n.set(self->dtype, target ? MaybeShape(*target) : std::nullopt);
}

void types_loss_of_pairs(TypeNode& n) {
  const Type *self = n.tensor("self"), *target = n.tensor("target");
  if (self == nullptr || target == nullptr) return;
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(self->dtype, Shape());
  n.set(self->dtype, self->shape && target->shape ? joint_shape(*self->shape, *target->shape) : std::nullopt);
}

}  // namespace tonnx
