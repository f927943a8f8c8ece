// types.cpp - the type of what attention gives.
#include "ops/attention/rows.h"

namespace tonnx {

void types_attention(TypeNode& n) {
  const Type* query = n.tensor("query");
  if (query == nullptr) return;
  const Shape *q = n.shape("query"), *k = n.shape("key"), *v = n.shape("value");
  const bool is_known = q && v && q->size() > 1 && !v->empty();
  MaybeShape shape = is_known ? MaybeShape(q->without_last(2)) : std::nullopt;
  // sizes before the last two broadcast, unless there are fewer keys, which queries share
  if (!n.args().flag("enable_gqa")) {
    for (const Shape* other : {k, v}) {
      if (shape && other && other->size() > 2) shape = joint_shape(*shape, other->without_last(2));
    }
  }
  if (shape) shape->append(Shape{q->at(q->size() - 2), v->back()});
  n.set(query->dtype, shape);
}

}  // namespace tonnx
