// types.h - types of what solving and determinants give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_det(TypeNode& n);
void types_solve(TypeNode& n);
void types_solve_triangular(TypeNode& n);
void types_cdist(TypeNode& n);
void types_cosine_similarity(TypeNode& n);
void types_pairwise_distance(TypeNode& n);
void types_pdist(TypeNode& n);
void types_with_info(TypeNode& n);
void types_slogdet(TypeNode& n);
void types_tensorinv(TypeNode& n);

}  // namespace tonnx
