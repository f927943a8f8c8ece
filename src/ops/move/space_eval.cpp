// space_eval.cpp - evaluation of what moves elements between channels and space.
#include <limits>

#include "ops/frame/eval_elements.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

/// The elements of a tensor that is seen with these sizes, in another order of its dimensions, in the shape of output
/// 0.
Results reordered(const NodeView& n, const Tensor& x, const std::vector<int64_t>& sizes,
                  const std::vector<size_t>& order) {
  const auto dims = static_dims(n.node().output(0));
  if (!dims || count_of(*dims) != x.count() || count_of(sizes) != x.count()) return {};
  const std::vector<int64_t> dense = strides_of(sizes);
  std::vector<int64_t> permuted, strides;
  for (const size_t i : order) {
    permuted.push_back(sizes[i]);
    strides.push_back(dense[i]);
  }
  auto result = std::make_shared<Tensor>(*strided(x, permuted, strides));
  result->dims = *dims;
  return TensorPtr(result);
}

}  // namespace

Results eval_depth_to_space(const NodeView& n) {
  const TensorPtr x = n.find_constant("input");
  const int64_t block = n.i("blocksize");
  if (x->dims.size() != 4 || block < 1 || block > std::numeric_limits<int32_t>::max() ||
      x->dims[1] % (block * block) != 0)
    return {};
  const int64_t batch = x->dims[0], channels = x->dims[1] / (block * block), height = x->dims[2], width = x->dims[3];
  const std::string mode = n.s("mode");
  if (mode == "DCR") return reordered(n, *x, {batch, block, block, channels, height, width}, {0, 3, 4, 1, 5, 2});
  if (mode == "CRD") return reordered(n, *x, {batch, channels, block, block, height, width}, {0, 1, 4, 2, 5, 3});
  return {};
}

Results eval_space_to_depth(const NodeView& n) {
  const TensorPtr x = n.find_constant("input");
  const int64_t block = n.i("blocksize");
  if (x->dims.size() != 4 || block < 1 || x->dims[2] % block != 0 || x->dims[3] % block != 0) return {};
  const std::vector<int64_t> sizes{x->dims[0], x->dims[1], x->dims[2] / block, block, x->dims[3] / block, block};
  const std::string mode = n.s("mode");
  if (mode == "DCR") return reordered(n, *x, sizes, {0, 3, 5, 1, 2, 4});
  if (mode == "CRD") return reordered(n, *x, sizes, {0, 1, 3, 5, 2, 4});
  return {};
}

Results eval_center_crop_pad(const NodeView& n) {
  const TensorPtr x = n.find_constant("input_data");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || dims->size() != x->dims.size()) return {};
  // the middle of the one lies on the middle of the other; what is left over is behind
  std::vector<int64_t> taken, from_first, to_first;
  for (size_t i = 0; i < dims->size(); ++i) {
    const int64_t from = x->dims[i], to = (*dims)[i];
    taken.push_back(std::min(from, to));
    from_first.push_back(from > to ? (from - to) / 2 : 0);
    to_first.push_back(to > from ? (to - from) / 2 : 0);
  }
  Elements result(x->dtype, *dims);
  const std::vector<int64_t> from_strides = strides_of(x->dims), to_strides = strides_of(*dims);
  IndexWalk walk(taken);
  for (int64_t i = count_of(taken); i > 0; --i, walk.next()) {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < taken.size(); ++d) {
      from += (walk[d] + from_first[d]) * from_strides[d];
      to += (walk[d] + to_first[d]) * to_strides[d];
    }
    result.copy(to, *x, from);
  }
  return result.done();
}

}  // namespace tonnx
