// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// raise.cpp
Values raise_reshaped(const AtenNode& n, OnnxBuilder& onnx);
Values raise_expand(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unsqueeze(const AtenNode& n, OnnxBuilder& onnx);
Values raise_squeeze(const AtenNode& n, OnnxBuilder& onnx);
Values raise_permute(const AtenNode& n, OnnxBuilder& onnx);
Values raise_transpose(const AtenNode& n, OnnxBuilder& onnx);
Values raise_matrix_transpose(const AtenNode& n, OnnxBuilder& onnx);
Values raise_movedim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_view_dtype(const AtenNode& n, OnnxBuilder& onnx);
Values raise_repeat(const AtenNode& n, OnnxBuilder& onnx);
Values raise_flip(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unfold(const AtenNode& n, OnnxBuilder& onnx);

// size_raise.cpp
Values raise_number_floor_div(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_mod(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_neg(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_true_div(const AtenNode& n, OnnxBuilder& onnx);
Values raise_sym_size(const AtenNode& n, OnnxBuilder& onnx);
Values raise_sym_numel(const AtenNode& n, OnnxBuilder& onnx);
Values raise_number_op(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_number(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_number_op(n, onnx, Op.value);
}
Values raise_number_compare(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_relation(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_number_compare(n, onnx, Op.value);
}
Values raise_rounded_size(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_integer(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_rounded_size(n, onnx, Op.value);
}

}  // namespace tonnx
