// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"

namespace tonnx {

// Types of what operators give

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

// The way back, and what raisings share, with those of other families too

// einsum_raise.cpp
Values raise_einsum(const AtenNode& n, OnnxBuilder& onnx);

// raise.cpp
Values raise_matmul(const AtenNode& n, OnnxBuilder& onnx);
Values raise_linear(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
