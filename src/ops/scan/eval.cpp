// eval.cpp - evaluation of running sums and products.
#include "ops/frame/eval_lines.h"
#include "ops/scan/rows.h"

namespace tonnx {
namespace {

template <class Step>
Results cumulative(const NodeView& n, int neutral, const Step& step) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!contains(kComputed, x.dtype) || x.dtype == DType::Bool || x.dims.empty() || x.count() > kMostLineNumbers)
    return {};
  const auto axis = n.find_const_ints("axis");
  if (!axis || axis->size() != 1) return {};
  const auto at = static_cast<size_t>(NodeView::normalized(axis->front(), static_cast<int64_t>(x.dims.size())));
  const bool exclusive = n.flag("exclusive"), reverse = n.flag("reverse");
  const auto run = [&](const auto& line) {
    auto sum = line[0];
    sum = static_cast<decltype(sum)>(neutral);
    for (int64_t i = 0; i < line.size; ++i) {
      auto& element = line[reverse ? line.size - 1 - i : i];
      const auto before = sum;
      sum = step(sum, element);
      element = exclusive ? before : sum;
    }
  };
  return is_float(x.dtype) ? with_lines<double>(x, at, run) : with_lines<uint64_t>(x, at, run);
}

}  // namespace

Results eval_cum_sum(const NodeView& n) {
  return cumulative(n, 0, [](auto a, auto b) { return a + b; });
}
Results eval_cum_prod(const NodeView& n) {
  return cumulative(n, 1, [](auto a, auto b) { return a * b; });
}

}  // namespace tonnx
