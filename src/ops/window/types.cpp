// types.cpp - the type of what puts windows together.
#include "ops/window/rows.h"

namespace tonnx {

void types_col2im(TypeNode& n) {
  const Shape* shape = n.shape("self");
  const Shape image = n.list("output_size"), kernel = n.list("kernel_size");
  if (shape == nullptr || shape->size() < 2 || image.size() != 2 || kernel.size() != 2)
    return n.set(n.dtype("self"), std::nullopt);
  Shape result(shape->begin(), shape->end() - 1);
  result.back() = floor_div(result.back(), kernel[0] * kernel[1]);
  result.insert(result.end(), image.begin(), image.end());
  n.set(n.dtype("self"), result);
}

}  // namespace tonnx
