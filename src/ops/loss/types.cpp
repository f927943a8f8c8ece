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

void types_loss_of_inputs(TypeNode& n) {
  const bool has_one = n.args().signature().find_input("input") >= 0;
  const Type *a = n.tensor(has_one ? "input" : "input1"), *b = n.tensor(has_one ? "target" : "input2");
  if (a == nullptr || b == nullptr) return;
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(a->dtype, Shape());
  MaybeShape shape = a->shape && b->shape ? joint_shape(*a->shape, *b->shape) : std::nullopt;
  const Shape* target = has_one ? nullptr : n.shape("target");
  if (shape && target) shape = joint_shape(*shape, *target);
  n.set(a->dtype, has_one || target ? shape : std::nullopt);
}

void types_loss_of_rows(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(self->dtype, Shape());
  MaybeShape shape = self->shape;
  if (shape && !shape->empty()) shape->pop_back();
  n.set(self->dtype, shape);
}

}  // namespace tonnx
