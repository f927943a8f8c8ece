// types.cpp - the types of random numbers.
#include "ops/random/types.h"

namespace tonnx {

void types_multinomial(TypeNode& n) {
  const Shape* weights = n.shape("self");
  const auto count = n.size("num_samples");
  MaybeShape shape;
  if (weights && !weights->empty()) {
    shape = *weights;
    shape->back() = count ? *count : n.fresh();
  }
  n.set(DType::Int64, shape);
}

}  // namespace tonnx
