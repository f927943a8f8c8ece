// types.cpp - types of what grids and boxes give.
#include "ops/vision/rows.h"

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

/// Each column is one window.
void types_im2col(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    if (shape.size() != 3 && shape.size() != 4) return std::nullopt;
    const Shape kernel = n.list("kernel_size"), dilation = n.list("dilation"), padding = n.list("padding"),
                stride = n.list("stride");
    Dim rows = shape[shape.size() - 3], columns(1);
    for (size_t i = 0; i < 2; ++i) {
      const Dim size = size_at(kernel, i, Dim(1)), step = size_at(stride, i, Dim(1));
      if (step.is(0)) return std::nullopt;
      rows = rows * size;
      const Dim covered = size_at(dilation, i, Dim(1)) * (size - Dim(1)) + Dim(1);
      const Dim padded = shape[shape.size() - 2 + i] + size_at(padding, i, Dim(0)) * Dim(2);
      columns = columns * (floor_div(padded - covered, step) + Dim(1));
    }
    Shape result{rows, columns};
    if (shape.size() == 4) result.insert(result.begin(), shape[0]);
    return result;
  });
}

/// One image of the pooled size for each box.
void types_roi(TypeNode& n) {
  const Shape *input = n.shape("input"), *rois = n.shape("rois");
  const auto height = n.size("pooled_height"), width = n.size("pooled_width");
  const bool is_known = input && rois && input->size() == 4 && !rois->empty() && height && width;
  n.set(n.dtype("input"), is_known ? MaybeShape(Shape{rois->front(), (*input)[1], *height, *width}) : std::nullopt);
}

/// The same, and where each maximum was.
void types_roi_pool(TypeNode& n) {
  types_roi(n);
  n.set(1, DType::Int32, n.found()[0].shape);
}

void types_deform_conv2d(TypeNode& n) {
  const Shape *input = n.shape("input"), *weight = n.shape("weight"), *offset = n.shape("offset");
  const bool is_known = input && weight && offset && input->size() == 4 && weight->size() == 4 && offset->size() == 4;
  // there is an offset for each element of the result
  n.set(n.dtype("input"),
        is_known ? MaybeShape(Shape{(*input)[0], (*weight)[0], (*offset)[2], (*offset)[3]}) : std::nullopt);
}

}  // namespace tonnx
