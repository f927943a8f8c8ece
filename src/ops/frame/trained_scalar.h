// trained_scalar.h - which constants of one element somebody trained, and which an exporter only needed.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Whether an initializer of one element is a parameter of the model, as its name says: `blocks.3.gamma`,
/// `logit_scale`, Paddle's `learnable_affine_block_0.w_0`; and not `onnx::Mul_12`, `/attn/Constant_1_output_0`,
/// `const_fold_opt__4`.
bool is_trained_scalar(const Value& value);

}  // namespace tonnx
