// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

// eval.cpp
Results eval_same_elements(const NodeView& n);  // Reshape and its kin: the first input in the shape of the output
Results eval_transpose(const NodeView& n);
Results eval_expand(const NodeView& n);
Results eval_tile(const NodeView& n);
Results eval_slice(const NodeView& n);
Results eval_split(const NodeView& n);
Results eval_concat(const NodeView& n);
Results eval_gather(const NodeView& n);
Results eval_pad(const NodeView& n);
Results eval_constant_of_shape(const NodeView& n);
Results eval_range(const NodeView& n);

// diagonal_eval.cpp
Results eval_eye_like(const NodeView& n);
Results eval_trilu(const NodeView& n);

// space_eval.cpp
Results eval_depth_to_space(const NodeView& n);
Results eval_space_to_depth(const NodeView& n);
Results eval_center_crop_pad(const NodeView& n);

}  // namespace tonnx
