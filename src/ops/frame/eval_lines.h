// eval_lines.h - lines of numbers along one axis, for the evaluations of what runs along it: running sums, Softmax,
// norms.
#pragma once
#include "ops/frame/eval_map.h"

namespace tonnx {

/// More are not worth the wait.
inline constexpr int64_t kMostLineNumbers = int64_t{1} << 27;

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
  if (!is_float(x.dtype) || !contains(kComputed, x.dtype) || x.dims.empty() || x.count() > kMostLineNumbers) return {};
  return with_lines<double>(x, static_cast<size_t>(n.axis("axis", "input")), use);
}

}  // namespace tonnx
