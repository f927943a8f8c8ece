// types.cpp - types of what activations give.
#include "ops/activation/rows.h"

namespace tonnx {

/// In 32 bits where the input of 16 is to be widened.
void types_softmax_forward(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self != nullptr) n.set(n.args().flag("half_to_float") ? DType::Float32 : self->dtype, self->shape);
}

}  // namespace tonnx
