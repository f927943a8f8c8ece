// eval_walk.h - elements in strided order, in runs and in blocks of numbers.
#pragma once
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "ir/tensor.h"

namespace tonnx {

/// The places `offset + sum(index * stride)` for all indices of a tensor of these sizes, in order. Dimensions that lie
/// one behind the other are taken as one, so that runs are long.
class Walk {
 public:
  Walk(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, int64_t offset = 0);

  int64_t count() const { return count_; }
  /// Calls `use(to, from, run, step)` for elements [first, first + count): `run` elements, of which the first is number
  /// `to` in order and lies at `from`, the others `step` apart.
  template <class Use>
  void for_each_run(int64_t first, int64_t count, Use&& use) const {
    if (count <= 0) return;
    std::vector<int64_t> index(dims_.size());
    int64_t at = offset_, rest = first;
    for (size_t d = dims_.size(); d-- > 0;) {
      index[d] = rest % dims_[d];
      rest /= dims_[d];
      at += index[d] * strides_[d];
    }
    const size_t last = dims_.size() - 1;
    for (int64_t to = first; to < first + count;) {
      const int64_t run = std::min(dims_[last] - index[last], first + count - to);
      use(to, at, run, strides_[last]);
      to += run;
      at += run * strides_[last];
      index[last] += run;
      for (size_t d = last; d > 0 && index[d] == dims_[d]; --d) {
        at += strides_[d - 1] - strides_[d] * dims_[d];
        index[d] = 0;
        ++index[d - 1];
      }
    }
  }
  template <class Use>
  void for_each_run(Use&& use) const {
    for_each_run(0, count_, use);
  }
  /// Calls `use(to, from)` for every element.
  template <class Use>
  void for_each(Use&& use) const {
    for_each_run([&](int64_t to, int64_t from, int64_t run, int64_t step) {
      for (int64_t i = 0; i < run; ++i) use(to + i, from + i * step);
    });
  }

 private:
  std::vector<int64_t> dims_, strides_;  // at least one dimension
  int64_t offset_, count_;
};

/// How many elements are computed at once: few enough to stay in the nearest cache.
inline constexpr int64_t kBlock = 1024;

/// Calls `use(i)` for i < count <= kBlock, in a loop that is turned into vector code where the count is kBlock.
template <class Use>
inline __attribute__((always_inline)) void for_block(int64_t count, Use&& use) {
  if (count == kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) use(i);
  } else {
    for (int64_t i = 0; i < count; ++i) use(i);
  }
}

// Elements as float, double, int64_t or uint64_t. Of a number type to another as static_cast does it, but for floats
// that are no number of an integer type: those are the nearest, and NaN is zero.

/// `count` elements from `at` on, `step` apart.
template <class T>
void load_numbers(const Tensor& x, int64_t at, int64_t step, int64_t count, T* into);
/// Floats are rounded once, to nearest, as bits_of does it. Integers wrap around.
template <class T>
void store_numbers(DType dtype, uint8_t* data, int64_t at, int64_t count, const T* from);

/// A tensor read in the order of a walk, block by block.
class NumberReader {
 public:
  NumberReader(const Tensor& x, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
               int64_t offset = 0)
      : x_(&x), walk_(dims, strides, offset) {}
  template <class T>
  void read(int64_t first, int64_t count, T* into) const {
    walk_.for_each_run(first, count, [&](int64_t to, int64_t from, int64_t run, int64_t step) {
      load_numbers(*x_, from, step, run, into + (to - first));
    });
  }

 private:
  const Tensor* x_;
  Walk walk_;
};

/// All elements as numbers.
std::vector<double> numbers_of(const Tensor& x);
/// A tensor of that type with these numbers.
TensorPtr tensor_of(DType dtype, std::vector<int64_t> dims, const std::vector<double>& numbers);

}  // namespace tonnx
