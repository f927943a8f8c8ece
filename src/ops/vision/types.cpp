// types.cpp - types of what grids and boxes give.
#include "ops/vision/types.h"

namespace tonnx {

void types_grid_sampler(TypeNode& n) {
  const Shape *input = n.shape("input"), *grid = n.shape("grid");
  MaybeShape shape;
  if (input && grid && input->size() == grid->size() && input->size() > 2) {
    shape = Shape{(*input)[0], (*input)[1]};
    shape->insert(shape->end(), grid->begin() + 1, grid->end() - 1);
  }
  n.set(n.dtype("input"), shape);
}

void types_affine_grid(TypeNode& n) {
  const auto size = n.sizes("size");
  MaybeShape shape;
  if (size && size->size() > 2) {
    shape = Shape{(*size)[0]};
    shape->insert(shape->end(), size->begin() + 2, size->end());
    shape->push_back(Dim(static_cast<int64_t>(size->size()) - 2));
  }
  n.set(n.dtype("theta"), shape);
}

void types_nms(TypeNode& n) { n.set(DType::Int64, Shape{n.fresh()}); }

}  // namespace tonnx
