// slices.cpp - finds the slices that the indices of a ScatterND stand for.
#include <optional>
#include <vector>

#include "ir/tensor.h"
#include "ops/index/index.h"

namespace tonnx {
namespace {

constexpr size_t kMostSlices = 3;  // inside one another, more than which nobody reads

/// Places along one dimension: `start`, and each `step` from there.
struct Slice {
  int64_t dim, start, step, count;
};

/// Indices [n0, n1, ..., dims] of which each depends on its own place alone, and grows with it.
class IndexGrid {
 public:
  explicit IndexGrid(const Tensor& indices) : indices_(indices) {}

  std::optional<std::vector<Slice>> find() const {
    const std::vector<int64_t>& dims = indices_.dims;
    const auto depth = static_cast<int64_t>(dims.size()) - 1;
    if (depth < 1 || dims.back() != depth || indices_.count() == 0) return std::nullopt;
    std::vector<Slice> slices;
    int64_t stride = indices_.count() / depth;
    for (int64_t dim = 0; dim < depth; ++dim) {
      const int64_t count = dims[static_cast<size_t>(dim)], start = at(0, dim);
      stride /= count;
      const int64_t step = count > 1 ? at(stride, dim) - start : 1;
      if (start < 0 || step < 1) return std::nullopt;
      slices.push_back({dim, start, step, count});
    }
    return is_all(slices) ? std::optional(slices) : std::nullopt;
  }

 private:
  int64_t at(int64_t place, int64_t dim) const { return element_as_int(indices_, place * indices_.dims.back() + dim); }

  bool is_all(const std::vector<Slice>& slices) const {
    const int64_t places = indices_.count() / indices_.dims.back();
    for (int64_t place = 0; place < places; ++place) {
      int64_t rest = place;
      for (auto slice = slices.rbegin(); slice != slices.rend(); ++slice) {
        if (at(place, slice->dim) != slice->start + slice->step * (rest % slice->count)) return false;
        rest /= slice->count;
      }
    }
    return true;
  }

  const Tensor& indices_;
};

}  // namespace

Value* put_slices(const OnnxNode& n, AtenBuilder& aten) {
  const TensorPtr indices = n.find_constant("indices");
  const auto slices = indices ? IndexGrid(*indices).find() : std::nullopt;
  const MaybeShape& shape = n.node().input(0)->type.shape;
  if (!slices || !shape || shape->size() < slices->size()) return nullptr;
  std::vector<Slice> narrow;  // those that do not take all of their dimension
  for (const Slice& slice : *slices) {
    const auto size = (*shape)[static_cast<size_t>(slice.dim)].constant();
    if (size && slice.start + slice.step * (slice.count - 1) >= *size) return nullptr;  // which is an error in the run
    if (size != slice.count) narrow.push_back(slice);
  }
  if (narrow.empty() || narrow.size() > kMostSlices) return nullptr;
  const auto end_of = [](const Slice& slice) { return slice.start + slice.step * (slice.count - 1) + 1; };
  std::vector<Value*> parts{n.input("data")};  // each a slice of the one before
  for (size_t i = 0; i + 1 < narrow.size(); ++i) {
    const Slice& slice = narrow[i];
    parts.push_back(aten("slice.Tensor", parts.back(), slice.dim, slice.start, end_of(slice), slice.step));
  }
  Value* y = n.input("updates");
  for (size_t i = narrow.size(); i-- > 0;) {
    const Slice& slice = narrow[i];
    y = aten("slice_scatter", parts[i], y, slice.dim, slice.start, end_of(slice), slice.step);
  }
  return y;
}

}  // namespace tonnx
