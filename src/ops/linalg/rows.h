// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include <string_view>

#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"

namespace tonnx {

// Types of what operators give

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

// The way back, and what raisings share, with those of other families too

// distance_raise.cpp
/// The p-norm of d + eps along the last dimension.
Value* length_of(Value* d, double p, double eps, bool keepdim, OnnxBuilder& onnx);
Values raise_cdist(const AtenNode& n, OnnxBuilder& onnx);

// solve_raise.cpp
Values raise_solve_triangular(const AtenNode& n, OnnxBuilder& onnx);
Values raise_det(const AtenNode& n, OnnxBuilder& onnx);

// Why there is no way back

inline constexpr std::string_view kNoOperator = "ONNX has no operator for it";

}  // namespace tonnx
