// gathers.cpp - Gathers that take all there is, in its order, only change the shape.
#include <numeric>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

constexpr int64_t kMostElements = 1 << 20;

const Symbol kGatherNd("GatherND");

/// The sizes of some dimensions; nothing where one is not known.
std::optional<std::vector<int64_t>> sizes_of(const Shape& shape, size_t first, size_t count) {
  std::vector<int64_t> sizes;
  for (size_t i = first; i < first + count; ++i) {
    const auto size = shape[i].constant();
    if (!size || *size <= 0) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

/// Whether rows of `width` indices into sizes lead to each element, one behind the other.
bool counts_up(const Tensor& indices, const std::vector<int64_t>& sizes) {
  const auto width = static_cast<int64_t>(sizes.size());
  const int64_t count = count_of(indices.dims) / width;
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    if (elements > kMostElements / size) return false;
    elements *= size;
  }
  if (elements != count) return false;
  for (int64_t row = 0; row < count; ++row) {
    int64_t offset = 0;
    for (int64_t i = 0; i < width; ++i) {
      const int64_t size = sizes[static_cast<size_t>(i)];
      int64_t index = element_as_int(indices, row * width + i);
      if (index < 0) index += size;
      if (index < 0 || index >= size) return false;
      offset = offset * size + index;
    }
    if (offset != row) return false;
  }
  return true;
}

/// 1. Gather of all rows. 2. GatherND of all elements along the first axes.
bool takes_all(const Node& node) {
  const Value *x = node.input(0), *indices = node.input(1);
  if (x == nullptr || indices == nullptr || !indices->constant || !x->type.shape) return false;
  const Tensor& tensor = *indices->constant;
  const Shape& shape = *x->type.shape;
  const int64_t elements = count_of(tensor.dims);
  if (elements == 0 || elements > kMostElements) return false;
  if (is_onnx(node, kGather)) {
    const auto axis = from_front(int_of(node, "axis").value_or(0), static_cast<int64_t>(shape.size()));
    const auto sizes = axis ? sizes_of(shape, static_cast<size_t>(*axis), 1) : std::nullopt;
    return sizes && counts_up(tensor, *sizes);
  }
  const size_t width = tensor.dims.empty() ? 0 : static_cast<size_t>(tensor.dims.back());
  if (int_of(node, "batch_dims").value_or(0) != 0 || width == 0 || width > shape.size()) return false;
  const auto sizes = sizes_of(shape, 0, width);
  return sizes && counts_up(tensor, *sizes);
}

}  // namespace

bool merge_gathers(Node& node, Rewriter& rewriter) {
  if ((!is_onnx(node, kGather) && !is_onnx(node, kGatherNd)) || !is_used(node.output(0)) || !takes_all(node))
    return false;
  Value *x = node.input(0), *y = node.output(0);
  if (!y->type.shape) return false;
  Value* same = have_same_type(x, y) ? x : add_reshape(node, rewriter, x, y);
  if (same == nullptr) return false;
  return rewriter.replace(y, same);
}

}  // namespace tonnx
