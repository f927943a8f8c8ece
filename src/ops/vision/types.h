// types.h - types of what grids and boxes give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_grid_sampler(TypeNode& n);
void types_affine_grid(TypeNode& n);
void types_nms(TypeNode& n);
void types_im2col(TypeNode& n);
void types_roi(TypeNode& n);
void types_roi_pool(TypeNode& n);
void types_deform_conv2d(TypeNode& n);
}  // namespace tonnx
