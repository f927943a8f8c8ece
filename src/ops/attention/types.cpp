// types.cpp - the type of what attention gives.
#include "ops/attention/types.h"

namespace tonnx {

void types_attention(TypeNode& n) {
  const Type* query = n.tensor("query");
  const Shape* value = n.shape("value");
  if (query == nullptr) return;
  MaybeShape shape = query->shape;
  if (shape && value && !shape->empty() && !value->empty()) shape->back() = value->back();
  n.set(query->dtype, shape);
}

}  // namespace tonnx
