// types.cpp - types of what norms give beside their result: means, and the inverse of deviations.
#include "ops/norm/rows.h"

namespace tonnx {

void types_native_layer_norm(TypeNode& n) {
  const Type* input = n.tensor("input");
  if (input == nullptr) return;
  n.set(0, input->dtype, input->shape);
  MaybeShape shape = input->shape;
  const size_t count = n.list("normalized_shape").size();
  if (shape && count > 0 && count <= shape->size()) {
    for (size_t i = shape->size() - count; i < shape->size(); ++i) (*shape)[i] = Dim(1);
  } else {
    shape = std::nullopt;
  }
  for (const size_t i : {1, 2}) n.set(i, input->dtype, shape);
}

void types_native_group_norm(TypeNode& n) {
  const Type* input = n.tensor("input");
  if (input == nullptr) return;
  n.set(0, input->dtype, input->shape);
  const auto batch = n.size("N"), groups = n.size("group");
  const MaybeShape shape = batch && groups ? MaybeShape(Shape{*batch, *groups}) : std::nullopt;
  for (const size_t i : {1, 2}) n.set(i, input->dtype, shape);
}

}  // namespace tonnx
