// types.h - types of what operators give that cut, join, pad and repeat.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_slice(TypeNode& n);
void types_narrow(TypeNode& n);
void types_select(TypeNode& n);
void types_diagonal(TypeNode& n);
void types_repeat_interleave(TypeNode& n);
void types_pad(TypeNode& n);
void types_pixel_shuffle(TypeNode& n);
void types_pixel_unshuffle(TypeNode& n);
void types_split(TypeNode& n);
void types_split_with_sizes(TypeNode& n);
void types_tensor_split(TypeNode& n);
void types_split_at(TypeNode& n);
void types_chunk(TypeNode& n);
void types_unbind(TypeNode& n);
void types_cat(TypeNode& n);
void types_stack(TypeNode& n);
void types_hstack(TypeNode& n);
void types_vstack(TypeNode& n);
void types_dstack(TypeNode& n);
void types_column_stack(TypeNode& n);
void types_diag_embed(TypeNode& n);
void types_diag(TypeNode& n);
void types_trace(TypeNode& n);
void types_linalg_diagonal(TypeNode& n);
void types_diagflat(TypeNode& n);
void types_strided(TypeNode& n);
void types_block_diag(TypeNode& n);
void types_cartesian_prod(TypeNode& n);
void types_combinations(TypeNode& n);
void types_padding(TypeNode& n);

}  // namespace tonnx
