// eval_row.cpp - evaluation of what runs along one axis: running sums, Softmax and its kin, norms, Hardmax.
#include <cmath>

#include "ops/eval_map.h"

namespace tonnx {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 27;

/// A line of numbers, `step` apart.
template <class T>
struct Line {
  T* first;
  int64_t step, size;
  T& operator[](int64_t i) const { return first[i * step]; }
};

/// Changes every line along the axis in place. T: double for floats, uint64_t for integers.
template <class T, class Use>
TensorPtr with_lines(const Tensor& x, size_t axis, const Use& use) {
  std::vector<T> numbers(static_cast<size_t>(x.count()));
  load_numbers(x, 0, 1, x.count(), numbers.data());
  const int64_t size = x.dims[axis];
  int64_t inner = 1;
  for (size_t i = axis + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  const int64_t lines = size == 0 ? 0 : x.count() / size;
  in_parallel(
      lines,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          use(Line<T>{numbers.data() + i / inner * inner * size + i % inner, inner, size});
      },
      size);
  NewTensor result(x.dtype, x.dims);
  store_numbers(x.dtype, result.data(), 0, result.count(), numbers.data());
  return result.done();
}

template <class Use>
Results along_axis(const NodeView& n, const Use& use) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!is_float(x.dtype) || !contains(kComputed, x.dtype) || x.dims.empty() || x.count() > kMostNumbers) return {};
  return with_lines<double>(x, static_cast<size_t>(n.axis("axis", "input")), use);
}

double largest_of(const Line<double>& line) {
  double largest = line[0];
  for (int64_t i = 1; i < line.size; ++i) {
    if (line[i] > largest || std::isnan(line[i])) largest = line[i];
  }
  return largest;
}

template <class Step>
Results cumulative(const NodeView& n, int neutral, const Step& step) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!contains(kComputed, x.dtype) || x.dtype == DType::Bool || x.dims.empty() || x.count() > kMostNumbers) return {};
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

namespace {

/// After which steps floats of 16 bits are rounded is left to each engine, and the results differ.
bool is_short(const NodeView& n) {
  const DType dtype = n.node().input(0)->constant->dtype;
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

}  // namespace

Results eval_softmax(const NodeView& n) {
  if (is_short(n)) return {};
  return along_axis(n, [](const Line<double>& line) {
    const double largest = largest_of(line);
    double sum = 0;
    for (int64_t i = 0; i < line.size; ++i) sum += line[i] = std::exp(line[i] - largest);
    for (int64_t i = 0; i < line.size; ++i) line[i] /= sum;
  });
}

Results eval_log_softmax(const NodeView& n) {
  if (is_short(n)) return {};
  return along_axis(n, [](const Line<double>& line) {
    const double largest = largest_of(line);
    double sum = 0;
    for (int64_t i = 0; i < line.size; ++i) sum += std::exp(line[i] - largest);
    for (int64_t i = 0; i < line.size; ++i) line[i] = line[i] - largest - std::log(sum);
  });
}

Results eval_hardmax(const NodeView& n) {
  return along_axis(n, [](const Line<double>& line) {
    int64_t best = 0;
    for (int64_t i = 1; i < line.size; ++i) {
      if (line[i] > line[best] || (std::isnan(line[i]) && !std::isnan(line[best]))) best = i;
    }
    for (int64_t i = 0; i < line.size; ++i) line[i] = i == best ? 1 : 0;
  });
}

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
      x.count() > kMostNumbers || x.count() * std::min(size, x.dims[1]) > kMostNumbers * 4)
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
