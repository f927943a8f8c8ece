// eval_elements.h - elements of any type, strings and packed ones too, put together into new tensors.
#pragma once
#include <memory>

#include "base/scratch.h"
#include "ops/frame/eval.h"
#include "ops/frame/eval_walk.h"

namespace tonnx {

/// A tensor that is made of elements of other tensors of its type. What is not written is zero, or an empty string.
class Elements {
 public:
  Elements(DType dtype, std::vector<int64_t> dims);
  int64_t count() const { return count_; }
  /// `count` elements that follow each other, at any place.
  void copy(int64_t to, const Tensor& from, int64_t at, int64_t count = 1);
  /// The one element everywhere.
  void fill(const Tensor& from, int64_t at);
  TensorPtr done();

 private:
  std::shared_ptr<Tensor> tensor_;
  int64_t count_;
  int bits_;
  std::unique_ptr<Scratch> room_;  // null for strings
};

/// The sizes before an axis, and behind it, as one number each.
struct AroundAxis {
  int64_t outer = 1, size = 1, inner = 1;
};
AroundAxis around_axis(const std::vector<int64_t>& dims, size_t axis);

/// An index that may count from the end, brought into [0, size); -1 where it is outside.
int64_t index_in(int64_t index, int64_t size);

/// The number types, for evaluations that compute with them.
bool is_plain_number(DType dtype);
/// Whether all inputs are of such types.
bool has_plain_inputs(const NodeView& n);
/// Goes through all indices of a tensor of these sizes, the last one fastest.
class IndexWalk {
 public:
  explicit IndexWalk(std::vector<int64_t> dims) : dims_(std::move(dims)), index_(dims_.size(), 0) {}
  const std::vector<int64_t>& index() const { return index_; }
  int64_t operator[](size_t i) const { return index_[i]; }
  /// False past the end.
  bool next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      if (++index_[d] < dims_[d]) return true;
      index_[d] = 0;
    }
    return false;
  }

 private:
  std::vector<int64_t> dims_, index_;
};

/// Whether as many multiplications as the product of these numbers may still be done: a small file can ask for more
/// than anybody waits for.
bool is_feasible(std::initializer_list<int64_t> factors);

/// `use(i)` for all i below `count`, each of `cost` simple steps, on several threads where they are many.
template <class Use>
void for_each_in_parallel(int64_t count, int64_t cost, Use&& use) {
  in_parallel(
      count,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) use(i);
      },
      cost);
}

}  // namespace tonnx
