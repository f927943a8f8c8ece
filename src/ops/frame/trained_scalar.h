// trained_scalar.h - which constants somebody trained, and which an exporter only needed.
#pragma once
#include <string_view>

#include "ir/graph.h"

namespace tonnx {

/// Whether an initializer of one element is a parameter of the model, as its name says: `blocks.3.gamma`,
/// `logit_scale`, Paddle's `learnable_affine_block_0.w_0`; and not `onnx::Mul_12`, `/attn/Constant_1_output_0`,
/// `const_fold_opt__4`.
bool is_trained_scalar(const Value& value);

/// Whether it is the name of an operator without weights: `expand`, `masked_fill`.
bool is_operator_word(std::string_view word);

/// Whether PyTorch's exporters called a result so, and computed it themselves: `masked_fill_1`, `full_like`. It is no
/// parameter, whatever its type.
bool is_result_name(std::string_view name);

}  // namespace tonnx
