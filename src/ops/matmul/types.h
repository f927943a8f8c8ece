// types.h - types of what products of matrices give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_matmul(TypeNode& n);
void types_mm(TypeNode& n);  // and bmm
void types_addmm(TypeNode& n);
void types_baddbmm(TypeNode& n);
void types_linear(TypeNode& n);
void types_einsum(TypeNode& n);
void types_outer(TypeNode& n);
void types_mv(TypeNode& n);
void types_dot(TypeNode& n);
void types_tensordot(TypeNode& n);
void types_inner(TypeNode& n);
void types_bilinear(TypeNode& n);
void types_addmv(TypeNode& n);
void types_addr(TypeNode& n);
void types_cross(TypeNode& n);
void types_vecdot(TypeNode& n);
void types_addbmm(TypeNode& n);
void types_kron(TypeNode& n);
void types_vander(TypeNode& n);

}  // namespace tonnx
