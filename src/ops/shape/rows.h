// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/open_node.h"

namespace tonnx {

// Types of what operators give

void types_unsqueeze(TypeNode& n);
void types_squeeze(TypeNode& n);
void types_transposed(TypeNode& n);  // t, mT
void types_transpose(TypeNode& n);
void types_permute(TypeNode& n);
void types_movedim(TypeNode& n);
void types_flatten(TypeNode& n);
void types_view_dtype(TypeNode& n);
void types_reshape(TypeNode& n);
void types_view(TypeNode& n);
void types_unflatten(TypeNode& n);
void types_expand_as(TypeNode& n);
void types_expand(TypeNode& n);
void types_repeat(TypeNode& n);
void types_tile(TypeNode& n);
// Sizes, and arithmetic on numbers `a` and `b`, as expressions.
void types_size(TypeNode& n);
void types_count(TypeNode& n);
void types_dim(TypeNode& n);
void types_same_number(TypeNode& n);
void types_negative(TypeNode& n);
void types_sum_of_numbers(TypeNode& n);
void types_difference(TypeNode& n);
void types_product(TypeNode& n);
void types_quotient(TypeNode& n);
void types_rest(TypeNode& n);
void types_larger(TypeNode& n);
void types_smaller(TypeNode& n);
void types_reshape_as(TypeNode& n);
void types_meshgrid(TypeNode& n);
void types_ravel(TypeNode& n);
void types_reversed(TypeNode& n);  // numpy_T
void types_rot90(TypeNode& n);
void types_broadcast_tensors(TypeNode& n);
void set_at_least(TypeNode& n, size_t rank);
void types_shape_as_tensor(TypeNode& n);
template <size_t Rank>
void types_at_least(TypeNode& n) {  // atleast_1d and so on
  set_at_least(n, Rank);
}

// The way back, and what raisings share, with those of other families too

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

// How nodes follow a size that becomes open

void open_reshape(OpenNode& n);
void open_flatten(OpenNode& n);
void open_expand(OpenNode& n);
void open_squeeze(OpenNode& n);

}  // namespace tonnx
