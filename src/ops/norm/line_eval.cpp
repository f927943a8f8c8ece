// line_eval.cpp - evaluation of LpNormalization and LRN.
#include <cmath>

#include "ops/frame/eval_lines.h"
#include "ops/norm/rows.h"

namespace tonnx {

Results eval_lp_normalization(const NodeView& n) {
  const int64_t order = n.i("p");
  if (order != 1 && order != 2) return {};
  return along_axis(n, [=](const Line<double>& line) {
    double sum = 0;
    for (int64_t i = 0; i < line.size; ++i) sum += order == 1 ? std::fabs(line[i]) : line[i] * line[i];
    const double norm = order == 1 ? sum : std::sqrt(sum);
    for (int64_t i = 0; i < line.size; ++i) line[i] = norm == 0 ? 0 : line[i] / norm;
  });
}

/// Over neighbouring channels.
Results eval_lrn(const NodeView& n) {
  const Tensor& x = *n.node().input(0)->constant;
  const double alpha = float_attribute(n, "alpha"), beta = float_attribute(n, "beta"),
               bias = float_attribute(n, "bias");
  const int64_t size = n.i("size");
  if (!is_float(x.dtype) || !contains(kComputed, x.dtype) || x.dims.size() < 2 || size < 1 ||
      x.count() > kMostLineNumbers || x.count() * std::min(size, x.dims[1]) > kMostLineNumbers * 4)
    return {};
  return with_lines<double>(x, 1, [=](const Line<double>& line) {
    std::vector<double> own(static_cast<size_t>(line.size));
    const int64_t before = std::min((size - 1) / 2, line.size), after = std::min(size - 1 - (size - 1) / 2, line.size);
    for (int64_t i = 0; i < line.size; ++i) own[static_cast<size_t>(i)] = line[i];
    for (int64_t i = 0; i < line.size; ++i) {
      double sum = 0;
      for (int64_t k = std::max<int64_t>(0, i - before); k <= std::min(line.size - 1, i + after); ++k)
        sum += own[static_cast<size_t>(k)] * own[static_cast<size_t>(k)];
      line[i] = own[static_cast<size_t>(i)] / std::pow(bias + alpha / static_cast<double>(size) * sum, beta);
    }
  });
}

}  // namespace tonnx
