// eval.cpp - evaluation of what only moves elements: strided copies, joins, looks-up.
#include "ops/frame/eval.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/transposed.h"
#include "ops/frame/eval_elements.h"
#include "ops/frame/eval_walk.h"
#include "ops/move/rows.h"

namespace tonnx {

NewTensor::NewTensor(DType dtype, std::vector<int64_t> dims)
    : tensor_(std::make_shared<Tensor>()),
      count_(count_of(dims)),
      bytes_(static_cast<size_t>(byte_size(dtype, count_))) {
  tensor_->dtype = dtype;
  tensor_->dims = std::move(dims);
}

TensorPtr NewTensor::done() {
  tensor_->data = bytes_.done();
  return std::move(tensor_);
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= dims[i];
  }
  return strides;
}

std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const std::vector<int64_t> dense = strides_of(from);
  std::vector<int64_t> strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t at = to.size() - from.size() + i;
    strides[at] = from[i] == 1 ? 0 : dense[i];
  }
  return strides;
}

std::optional<std::vector<int64_t>> broadcast_dims(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<int64_t> dims;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t left = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t right = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (left != right && left != 1 && right != 1) return std::nullopt;
    dims.push_back(left == 1 ? right : left);
  }
  return dims;
}

std::optional<std::vector<int64_t>> static_dims(const Value* value) {
  if (value == nullptr || !value->type.is_tensor() || !value->type.shape) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dim& dim : *value->type.shape) {
    const auto number = dim.constant();
    if (!number || *number < 0) return std::nullopt;
    dims.push_back(*number);
  }
  return dims;
}

namespace {

/// The dimension, not the last, along which the source is dense while it is not along the last; nothing where there is
/// none.
std::optional<size_t> find_dense(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  constexpr int64_t kWorthIt = 16;
  if (dims.empty() || strides.back() <= 1 || dims.back() < kWorthIt) return std::nullopt;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (strides[d] == 1 && dims[d] >= kWorthIt) return d;
  }
  return std::nullopt;
}

/// Matrices of the last dimension and of that along which the source is dense, each transposed as a whole.
void copy_matrices(const uint8_t* source, uint8_t* target, size_t width, std::vector<int64_t> dims,
                   std::vector<int64_t> strides, int64_t offset, size_t dense) {
  std::vector<int64_t> places = strides_of(dims);
  const auto rows = static_cast<size_t>(dims[dense]), columns = static_cast<size_t>(dims.back());
  const size_t source_stride = static_cast<size_t>(strides.back()) * width;
  const size_t target_stride = static_cast<size_t>(places[dense]) * width;
  for (auto* list : {&dims, &strides, &places}) {
    list->pop_back();
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(dense));
  }
  const auto at = [&](const std::vector<int64_t>& steps, int64_t matrix) {
    int64_t result = 0;
    for (size_t d = dims.size(); d-- > 0; matrix /= dims[d]) result += matrix % dims[d] * steps[d];
    return result;
  };
  constexpr size_t kBand = 256;  // rows of the result that are written at a time, so that one matrix is work for many
  const size_t bands = (rows + kBand - 1) / kBand;
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / static_cast<int64_t>(bands);
      const size_t first = static_cast<size_t>(i) % bands * kBand;
      const uint8_t* from = source + (offset + at(strides, matrix)) * static_cast<int64_t>(width) + first * width;
      uint8_t* to = target + static_cast<size_t>(at(places, matrix)) * width + first * target_stride;
      transpose({from, columns, std::min(kBand, rows - first), source_stride, width}, to, target_stride);
    }
  };
  in_parallel(count_of(dims) * static_cast<int64_t>(bands), copy,
              static_cast<int64_t>(std::min(kBand, rows) * columns));
}

}  // namespace

TensorPtr strided(const Tensor& x, std::vector<int64_t> dims, const std::vector<int64_t>& strides, int64_t offset) {
  const int bits = info(x.dtype).bits;
  if (bits < 8) {
    Elements result(x.dtype, dims);
    Walk(dims, strides, offset).for_each([&](int64_t to, int64_t from) { result.copy(to, x, from); });
    return result.done();
  }
  const auto size = static_cast<size_t>(bits / 8);
  auto tensor = std::make_shared<Tensor>();
  tensor->dtype = x.dtype;
  tensor->dims = dims;
  Scratch room(static_cast<size_t>(byte_size(x.dtype, count_of(dims))));
  const uint8_t* source = x.data.data();
  uint8_t* target = room.data();
  const Walk walk(dims, strides, offset);
  const auto dense = find_dense(dims, strides);
  const auto copy = [&]<size_t N>() {
    if (dense) return copy_matrices(source, target, N, dims, strides, offset, *dense);
    in_parallel(walk.count(), [&](int64_t begin, int64_t end) {
      walk.for_each_run(begin, end - begin, [&](int64_t to, int64_t from, int64_t run, int64_t step) {
        uint8_t* into = target + static_cast<size_t>(to) * N;
        const uint8_t* first = source + from * static_cast<int64_t>(N);
        if (step == 1) {
          std::memcpy(into, first, static_cast<size_t>(run) * N);
        } else {
          for (int64_t i = 0; i < run; ++i)
            std::memcpy(into + static_cast<size_t>(i) * N, first + i * step * static_cast<int64_t>(N), N);
        }
      });
    });
  };
  switch (size) {
    case 1: copy.template operator()<1>(); break;
    case 2: copy.template operator()<2>(); break;
    case 4: copy.template operator()<4>(); break;
    case 8: copy.template operator()<8>(); break;
    default: copy.template operator()<16>(); break;
  }
  tensor->data = room.done();
  return tensor;
}

Results eval_same_elements(const NodeView& n) {
  const Value* input = n.node().input(0);
  auto dims = static_dims(n.node().output(0));
  if (!dims || count_of(*dims) != input->constant->count()) return {};
  auto tensor = std::make_shared<Tensor>(*input->constant);
  tensor->dims = std::move(*dims);
  tensor->source = {};
  return TensorPtr(tensor);
}

Results eval_transpose(const NodeView& n) {
  const TensorPtr x = n.find_constant("data");
  const auto rank = static_cast<int64_t>(x->dims.size());
  std::vector<int64_t> order = n.find_ints("perm").value_or(std::vector<int64_t>());
  if (order.empty()) {
    for (int64_t i = rank; i-- > 0;) order.push_back(i);
  }
  if (static_cast<int64_t>(order.size()) != rank) return {};
  const std::vector<int64_t> dense = strides_of(x->dims);
  std::vector<int64_t> dims, strides;
  for (const int64_t axis : order) {
    const auto at = static_cast<size_t>(NodeView::normalized(axis, rank));
    dims.push_back(x->dims[at]);
    strides.push_back(dense[at]);
  }
  return strided(*x, dims, strides);
}

Results eval_expand(const NodeView& n) {
  const TensorPtr x = n.find_constant("input");
  auto dims = static_dims(n.node().output(0));
  if (!dims || dims->size() < x->dims.size()) return {};
  return strided(*x, *dims, broadcast_strides(x->dims, *dims));
}

Results eval_tile(const NodeView& n) {
  const TensorPtr x = n.find_constant("input");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || dims->size() != x->dims.size()) return {};
  if (count_of(*dims) == 0 || x->count() == 0) return Elements(x->dtype, *dims).done();
  // each dimension as two: how often, and how much
  std::vector<int64_t> twice, strides;
  const std::vector<int64_t> dense = strides_of(x->dims);
  for (size_t i = 0; i < dims->size(); ++i) {
    twice.push_back((*dims)[i] / x->dims[i]);
    twice.push_back(x->dims[i]);
    strides.push_back(0);
    strides.push_back(dense[i]);
  }
  auto result = std::make_shared<Tensor>(*strided(*x, twice, strides));
  result->dims = *dims;
  return TensorPtr(result);
}

Results eval_slice(const NodeView& n) {
  const TensorPtr x = n.find_constant("data");
  const auto rank = static_cast<int64_t>(x->dims.size());
  const auto starts = n.find_const_ints("starts"), ends = n.find_const_ints("ends");
  if (!starts || !ends || starts->size() != ends->size()) return {};
  std::vector<int64_t> axes = n.find_const_ints("axes").value_or(std::vector<int64_t>());
  const std::vector<int64_t> steps = n.find_const_ints("steps").value_or(std::vector<int64_t>(starts->size(), 1));
  for (int64_t i = 0; axes.size() < starts->size() && !n.has("axes"); ++i) axes.push_back(i);
  if (axes.size() != starts->size() || steps.size() != starts->size() || static_cast<int64_t>(axes.size()) > rank)
    return {};
  std::vector<int64_t> dims = x->dims, strides = strides_of(x->dims);
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(NodeView::normalized(axes[i], rank));
    // a step past the end is as good as any other
    const int64_t size = x->dims[axis], step = std::clamp(steps[i], -size - 1, size + 1);
    if (step == 0) return {};
    const auto clamp = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 && at >= -size ? at + size : at, low, high);
    };
    const int64_t start = step > 0 ? clamp((*starts)[i], 0, size) : clamp((*starts)[i], -1, size - 1);
    int64_t end = (*ends)[i];
    if (step < 0 && end < -size)
      end = -1;
    else
      end = step > 0 ? clamp(end, 0, size) : clamp(end, -1, size - 1);
    dims[axis] = std::max<int64_t>(0, step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step);
    offset += dims[axis] > 0 ? start * strides[axis] : 0;
    strides[axis] *= dims[axis] > 1 ? step : 1;
  }
  return strided(*x, dims, strides, offset);
}

Results eval_split(const NodeView& n) {
  const TensorPtr x = n.find_constant("input");
  const auto axis = static_cast<size_t>(n.axis("axis", "input"));
  Results results;
  const std::vector<int64_t> strides = strides_of(x->dims);
  int64_t start = 0;
  for (const Value* output : n.node().outputs()) {
    const auto dims = static_dims(output);
    if (!dims || dims->size() != x->dims.size() || start + (*dims)[axis] > x->dims[axis]) return {};
    results.push_back(strided(*x, *dims, strides, start * strides[axis]));
    start += (*dims)[axis];
  }
  return results;
}

Results eval_concat(const NodeView& n) {
  const auto dims = static_dims(n.node().output(0));
  if (!dims || dims->empty()) return {};
  const auto axis = static_cast<size_t>(NodeView::normalized(n.i("axis"), static_cast<int64_t>(dims->size())));
  Elements result(n.node().output(0)->type.dtype, *dims);
  const AroundAxis around = around_axis(*dims, axis);
  const int64_t row = around.size * around.inner;
  int64_t at = 0;
  for (const Value* input : n.values("inputs")) {
    const Tensor& x = *input->constant;
    if (x.dims.size() != dims->size() || x.dtype != n.node().output(0)->type.dtype) return {};
    const int64_t part = x.dims[axis] * around.inner;
    if (x.count() != part * around.outer || part > row - at) return {};
    for (int64_t i = 0; i < around.outer; ++i) result.copy(i * row + at, x, i * part, part);
    at += part;
  }
  return at == row ? Results(result.done()) : Results();
}

Results eval_gather(const NodeView& n) {
  const TensorPtr x = n.find_constant("data"), indices = n.find_constant("indices");
  const auto rank = static_cast<int64_t>(x->dims.size());
  if (rank == 0 || !is_integer(indices->dtype)) return {};
  const auto axis = static_cast<size_t>(NodeView::normalized(n.i("axis"), rank));
  const auto offset = static_cast<std::ptrdiff_t>(axis);
  std::vector<int64_t> dims(x->dims.begin(), x->dims.begin() + offset);
  dims.insert(dims.end(), indices->dims.begin(), indices->dims.end());
  dims.insert(dims.end(), x->dims.begin() + offset + 1, x->dims.end());
  Elements result(x->dtype, dims);
  const AroundAxis around = around_axis(x->dims, axis);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < indices->count(); ++i) {
    const int64_t index = element_as_int(*indices, i);
    places.push_back(index_in(index, around.size));
    require(places.back() >= 0, "index {} is out of range for size {}", index, around.size);
  }
  int64_t to = 0;
  for (int64_t o = 0; o < around.outer; ++o) {
    for (const int64_t at : places) {
      result.copy(to, *x, (o * around.size + at) * around.inner, around.inner);
      to += around.inner;
    }
  }
  return result.done();
}

namespace {

enum class PadMode { Constant, Edge, Reflect, Wrap };

/// Where the element at `i`, counted from the first one of `size`, comes from; -1: it is filled.
int64_t padded_source(PadMode mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::Constant) return -1;
  if (mode == PadMode::Edge) return std::clamp<int64_t>(i, 0, size - 1);
  const int64_t period = mode == PadMode::Wrap ? size : std::max<int64_t>(2 * (size - 1), 1);
  const int64_t at = (i % period + period) % period;
  return at < size ? at : period - at;
}

/// For each axis where the elements of the result come from; nothing where the pads are of another form.
std::optional<std::vector<std::vector<int64_t>>> pad_sources(const NodeView& n, const std::vector<int64_t>& from,
                                                             const std::vector<int64_t>& to) {
  const auto pads = n.find_const_ints("pads");
  const std::string mode = n.s("mode");
  const auto rank = static_cast<int64_t>(from.size());
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  if (n.has("axes")) axes = n.find_const_ints("axes").value_or(std::vector<int64_t>());
  if (!pads || pads->size() != 2 * axes.size()) return std::nullopt;
  const PadMode kind = mode == "constant"  ? PadMode::Constant
                       : mode == "edge"    ? PadMode::Edge
                       : mode == "reflect" ? PadMode::Reflect
                                           : PadMode::Wrap;
  if (kind == PadMode::Wrap && mode != "wrap") return std::nullopt;
  std::vector<int64_t> begin(from.size(), 0), end(from.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(NodeView::normalized(axes[i], rank));
    begin[axis] = (*pads)[i];
    end[axis] = (*pads)[axes.size() + i];
  }
  std::vector<std::vector<int64_t>> sources(from.size());
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t size = 0;
    if (__builtin_add_overflow(from[d], begin[d], &size) || __builtin_add_overflow(size, end[d], &size) ||
        size != to[d])
      return std::nullopt;
    // only a constant says what is beside an element that is cropped away
    const bool is_cropped = begin[d] < 0 || end[d]<0, is_padded = begin[d]> 0 || end[d] > 0;
    if (kind != PadMode::Constant && is_padded && (is_cropped || from[d] == 0)) return std::nullopt;
    for (int64_t i = 0; i < size; ++i) sources[d].push_back(padded_source(kind, i - begin[d], from[d]));
  }
  return sources;
}

}  // namespace

Results eval_pad(const NodeView& n) {
  const TensorPtr x = n.find_constant("data"), value = n.find_constant("constant_value");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || dims->size() != x->dims.size() || (value && (value->count() != 1 || value->dtype != x->dtype)))
    return {};
  Elements result(x->dtype, *dims);
  if (result.count() == 0) return result.done();
  const auto sources = pad_sources(n, x->dims, *dims);
  if (!sources) return {};
  const std::vector<int64_t> strides = strides_of(x->dims);
  IndexWalk walk(*dims);
  for (int64_t to = 0; to < result.count(); ++to, walk.next()) {
    int64_t from = 0;
    for (size_t d = 0; d < dims->size() && from >= 0; ++d) {
      const int64_t at = (*sources)[d][static_cast<size_t>(walk[d])];
      from = at < 0 ? -1 : from + at * strides[d];
    }
    if (from >= 0)
      result.copy(to, *x, from);
    else if (value)
      result.copy(to, *value, 0);
  }
  return result.done();
}

Results eval_constant_of_shape(const NodeView& n) {
  const auto dims = static_dims(n.node().output(0));
  const TensorPtr value = n.find_tensor("value");
  if (!dims || (value && value->count() != 1)) return {};
  Elements result(value ? value->dtype : DType::Float32, *dims);
  if (value) result.fill(*value, 0);
  return result.done();
}

Results eval_range(const NodeView& n) {
  const TensorPtr start = n.find_constant("start"), delta = n.find_constant("delta");
  const auto dims = static_dims(n.node().output(0));
  const bool is_number = is_float(start->dtype) || is_integer(start->dtype);
  if (!dims || !is_number || delta->dtype != start->dtype || start->count() != 1 || delta->count() != 1) return {};
  NewTensor result(start->dtype, *dims);
  for (int64_t i = 0; i < result.count(); ++i) {
    if (is_float(start->dtype)) {
      result.set(i, element_as_double(*start, 0) + static_cast<double>(i) * element_as_double(*delta, 0));
    } else {
      result.set(i, element_as_int(*start, 0) + i * element_as_int(*delta, 0));
    }
  }
  return result.done();
}

}  // namespace tonnx
