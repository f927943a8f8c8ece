// diagonal_eval.cpp - evaluation of Trilu and EyeLike.
#include <cstring>

#include "ops/frame/eval_elements.h"
#include "ops/frame/eval_map.h"
#include "ops/move/rows.h"

namespace tonnx {

Results eval_trilu(const NodeView& n) {
  const Tensor& x = *n.find_constant("input");
  const int bits = info(x.dtype).bits;
  if (x.dims.size() < 2 || bits < 8) return {};
  int64_t k = 0;
  if (n.has("k")) {
    const auto given = n.find_const_ints("k");
    if (!given || given->size() != 1) return {};
    k = given->front();
  }
  const int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  const bool upper = n.flag("upper");
  k = std::clamp(k, -rows - 1, columns + 1);
  NewTensor result(x.dtype, x.dims);
  const int64_t size = bits / 8;
  for (int64_t line = 0; columns > 0 && line < result.count() / columns; ++line) {
    const int64_t border = std::clamp<int64_t>(line % rows + k + (upper ? 0 : 1), 0, columns);
    const int64_t begin = upper ? border : 0, end = upper ? columns : border;
    const int64_t at = (line * columns + begin) * size;
    if (begin < end) std::memcpy(result.data() + at, x.data.data() + at, static_cast<size_t>((end - begin) * size));
  }
  return result.done();
}

Results eval_eye_like(const NodeView& n) {
  const auto dims = static_dims(n.node().output(0));
  const DType dtype = n.node().output(0)->type.dtype;
  const int64_t k = n.i("k");
  if (!dims || dims->size() != 2 || !is_plain_number(dtype)) return {};
  NewTensor result(dtype, *dims);
  for (int64_t row = 0; row < (*dims)[0]; ++row) {
    if (k < -row || k >= (*dims)[1] - row) continue;
    result.set(row * (*dims)[1] + row + k, 1.0);
  }
  return result.done();
}

}  // namespace tonnx
