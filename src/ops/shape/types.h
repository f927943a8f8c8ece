// types.h - types of what changes of shape give, and of sizes.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

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

}  // namespace tonnx
