// col2im_eval.cpp - evaluation of what puts windows back to where they were taken from.
#include "ops/frame/eval_elements.h"
#include "ops/window/rows.h"
#include "ops/window/window.h"

namespace tonnx {

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
