// eval_matmul.h - the product of two dense matrices in memory, for the evaluations that need one.
#pragma once
#include <cstdint>

namespace tonnx {

/// c += a b, row by row, with `rows x inner` and `inner x columns` numbers. T: double or uint64_t.
template <class T>
void add_product(const T* a, const T* b, T* c, int64_t rows, int64_t inner, int64_t columns);

/// Whether a product of these sizes is small enough to be computed while converting.
bool is_worth_product(int64_t batches, int64_t rows, int64_t inner, int64_t columns);

}  // namespace tonnx
