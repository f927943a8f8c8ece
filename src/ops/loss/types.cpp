// types.cpp - types of what losses give.
#include "ops/frame/result_dtype.h"
#include "ops/loss/rows.h"

namespace tonnx {

void types_loss(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const Shape* target = n.shape("target");
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(self->dtype, Shape());
  n.set(self->dtype, target ? MaybeShape(*target) : std::nullopt);
}

void types_cross_entropy(TypeNode& n) {
  types_loss(n);
  const Shape *self = n.shape("self"), *target = n.shape("target");
  if (self == nullptr || target == nullptr || !is_float(n.dtype("target"))) return;
  // of probabilities, one for each class
  MaybeShape shape = Shape();
  if (n.args().find_int("reduction").value_or(1) == 0) {
    shape = *self;
    if (!shape->empty()) shape->erase_at(shape->size() > 1 ? 1 : 0);
  }
  n.set(n.joint_dtype({"self", "target", "weight"}), shape);
}

namespace {

void set_loss_of_pairs(TypeNode& n, DType dtype) {
  const Type *self = n.tensor("self"), *target = n.tensor("target");
  if (self == nullptr || target == nullptr) return;
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(dtype, Shape());
  n.set(dtype, self->shape && target->shape ? joint_shape(*self->shape, *target->shape) : std::nullopt);
}

}  // namespace

void types_loss_of_pairs(TypeNode& n) { set_loss_of_pairs(n, n.dtype("self")); }
void types_loss_of_differences(TypeNode& n) { set_loss_of_pairs(n, n.joint_dtype({"self", "target"})); }

/// PyTorch computes it in place, in what is made of the target.
void types_bce_with_logits(TypeNode& n) { set_loss_of_pairs(n, n.dtype("target")); }

namespace {

/// -target * (input1 - input2), one after the other.
DType ranking_dtype(const TypeNode& n, const Type& a, const Type& b) {
  const bool are_numbers = a.rank() == 0 && b.rank() == 0;
  const Type difference = Type::tensor(joint_dtype(a, b), are_numbers ? MaybeShape(Shape()) : std::nullopt);
  const Type* target = n.tensor("target");
  const DType dtype = target ? joint_dtype(difference, *target) : difference.dtype;
  return is_float(dtype) ? dtype : DType::Float32;
}

}  // namespace

void types_loss_of_inputs(TypeNode& n) {
  const bool has_one = n.args().signature().find_input("input") >= 0;
  const Type *a = n.tensor(has_one ? "input" : "input1"), *b = n.tensor(has_one ? "target" : "input2");
  if (a == nullptr || b == nullptr) return;
  const DType dtype = has_one ? a->dtype : ranking_dtype(n, *a, *b);
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(dtype, Shape());
  MaybeShape shape = a->shape && b->shape ? joint_shape(*a->shape, *b->shape) : std::nullopt;
  const Shape* target = has_one ? nullptr : n.shape("target");
  if (shape && target) shape = joint_shape(*shape, *target);
  n.set(dtype, has_one || target ? shape : std::nullopt);
}

namespace {

/// Of two tensors together, without the dimension `dim`, along which they are summed.
MaybeShape without(const MaybeShape& shape, size_t dim) {
  if (!shape || shape->size() <= dim) return std::nullopt;
  MaybeShape result = shape;
  result->erase_at(static_cast<int64_t>(dim));
  return result;
}

MaybeShape joint(const MaybeShape& a, const MaybeShape& b) { return a && b ? joint_shape(*a, *b) : std::nullopt; }

void set_loss(TypeNode& n, DType dtype, const MaybeShape& shape) {
  n.set(dtype, n.args().find_int("reduction").value_or(1) != 0 ? MaybeShape(Shape()) : shape);
}

}  // namespace

void types_cosine_embedding_loss(TypeNode& n) {
  const Type *a = n.tensor("input1"), *b = n.tensor("input2"), *target = n.tensor("target");
  if (a == nullptr || b == nullptr || target == nullptr || !target->shape) return;
  const MaybeShape cosines = without(joint(a->shape, b->shape), target->shape->size() == 1 ? 1 : 0);
  set_loss(n, n.joint_float({"input1", "input2"}), joint(cosines, target->shape));
}

void types_triplet_margin_loss(TypeNode& n) {
  const Type *anchor = n.tensor("anchor"), *positive = n.tensor("positive"), *negative = n.tensor("negative");
  if (anchor == nullptr || positive == nullptr || negative == nullptr) return;
  const MaybeShape all = joint(joint(anchor->shape, positive->shape), negative->shape);
  const MaybeShape shape = all && !all->empty() ? without(all, all->size() - 1) : all;
  set_loss(n, n.joint_float({"anchor", "positive", "negative"}), shape);
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
