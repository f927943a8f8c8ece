// space_eval.cpp - evaluation of what moves elements between channels, windows and space.
#include "ops/frame/eval_elements.h"
#include "ops/move/eval.h"
#include "ops/window/window.h"

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
  if (x->dims.size() != 4 || block < 1 || block > kLargestWindow || x->dims[1] % (block * block) != 0) return {};
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

Results eval_col2im(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("input");
  const auto dims = static_dims(n.node().output(0));
  const auto block = n.find_const_ints("block_shape");
  if (!dims || !block || x->dims.size() != 3 || dims->size() != block->size() + 2 || !is_plain_number(x->dtype))
    return {};
  const size_t rank = block->size();
  const auto strides = spatial_ints(n, "strides", rank, 1, 1), dilations = spatial_ints(n, "dilations", rank, 1, 1),
             pads = spatial_ints(n, "pads", 2 * rank, 0, 0);
  // the image, then the block, as one walk: [channels, block, windows]
  std::vector<int64_t> sizes{(*dims)[1]}, image = {dims->begin() + 2, dims->end()};
  sizes.insert(sizes.end(), block->begin(), block->end());
  for (size_t i = 0; i < rank; ++i) {
    if ((*block)[i] < 1 || (*block)[i] > kLargestWindow) return {};
    const int64_t room = image[i] + pads[i] + pads[rank + i] - dilations[i] * ((*block)[i] - 1) - 1;
    if (room < 0) return {};
    sizes.push_back(room / strides[i] + 1);
  }
  if (count_of(sizes) != x->dims[1] * x->dims[2] || (*dims)[0] != x->dims[0]) return {};
  const std::vector<int64_t> image_strides = strides_of(image);
  const int64_t plane = count_of(image);
  const std::vector<double> numbers = numbers_of(*x);
  std::vector<double> result(static_cast<size_t>(count_of(*dims)));
  size_t from = 0;
  for (int64_t batch = 0; batch < x->dims[0]; ++batch) {
    IndexWalk walk(sizes);
    for (int64_t i = x->dims[1] * x->dims[2]; i > 0; --i, walk.next(), ++from) {
      int64_t to = (batch * (*dims)[1] + walk[0]) * plane;
      bool is_inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = walk[1 + rank + d] * strides[d] + walk[1 + d] * dilations[d] - pads[d];
        is_inside = is_inside && at >= 0 && at < image[d];
        to += at * image_strides[d];
      }
      if (is_inside) result[static_cast<size_t>(to)] += numbers[from];
    }
  }
  return tensor_of(x->dtype, *dims, result);
}

/// The indices are those of a tensor of the size that the pool had; a larger output_shape has zeros behind that.
Results eval_max_unpool(const NodeView& n) {
  const TensorPtr x = n.find_constant("X"), indices = n.find_constant("I");
  const auto dims = static_dims(n.node().output(0));
  const std::vector<int64_t> kernel = n.ints("kernel_shape");
  if (!dims || x->dims.size() != kernel.size() + 2 || dims->size() != x->dims.size() || indices->dims != x->dims ||
      !is_integer(indices->dtype))
    return {};
  const auto strides = spatial_ints(n, "strides", kernel.size(), 1, 1),
             pads = spatial_ints(n, "pads", 2 * kernel.size(), 0, 0);
  std::vector<int64_t> sizes{x->dims[0], x->dims[1]};
  for (size_t i = 0; i < kernel.size(); ++i) {
    sizes.push_back((x->dims[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[kernel.size() + i]);
    if (sizes.back() < 0) return {};
  }
  const int64_t count = count_of(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if ((*dims)[i] < sizes[i]) return {};
  }
  const std::vector<int64_t> from_strides = strides_of(sizes), to_strides = strides_of(*dims);
  Elements result(x->dtype, *dims);
  for (int64_t i = 0; i < x->count(); ++i) {
    int64_t at = element_as_int(*indices, i), to = 0;
    if (at < 0 || at >= count) return {};
    for (size_t d = 0; d < sizes.size(); ++d) {
      to += at / from_strides[d] * to_strides[d];
      at %= from_strides[d];
    }
    result.copy(to, *x, i);
  }
  return result.done();
}

}  // namespace tonnx
