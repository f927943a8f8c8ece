// eval.h - the product of two dense matrices in memory, for the evaluations that need one.
#pragma once
#include <cstdint>

#include "ops/frame/eval.h"

namespace tonnx {

/// c += a b, row by row, with `rows x inner` and `inner x columns` numbers. T: double or uint64_t.
template <class T>
void add_product(const T* a, const T* b, T* c, int64_t rows, int64_t inner, int64_t columns);

/// Whether a product of these sizes is small enough to be computed while converting.
bool is_worth_product(int64_t batches, int64_t rows, int64_t inner, int64_t columns);

// einsum_eval.cpp
Results eval_einsum(const NodeView& n);

// eval.cpp
Results eval_matmul(const NodeView& n);
Results eval_gemm(const NodeView& n);
Results eval_matmul_integer(const NodeView& n);
Results eval_qlinear_matmul(const NodeView& n);
Results eval_det(const NodeView& n);

}  // namespace tonnx
