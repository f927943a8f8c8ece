// weights_eval.h - what is asked of each of the quantised weights of a product.
#pragma once
#include "ir/tensor.h"

namespace tonnx {

/// Weights as [outer, terms, inner], where the terms are those of one sum. Channels, which may have zero points of
/// their own, are the outer ones of a convolution and the inner ones of a matrix.
struct SumLayout {
  int64_t outer = 1, terms = 1, inner = 1;

  static SumLayout of_conv(const std::vector<int64_t>& dims);
  static SumLayout of_matrix(const std::vector<int64_t>& dims);
};

/// The largest that the positive, or the negative, weights of any one sum come to, less their zero points: one, or one
/// for each channel.
double largest_sum(const Tensor& weights, const std::vector<int64_t>& zero_points, const SumLayout& layout);

/// The weights less their zero points, where all of them fit into 8 bits; else nullptr.
TensorPtr centered_in_bytes(const Tensor& weights, const std::vector<int64_t>& zero_points, const SumLayout& layout);

}  // namespace tonnx
