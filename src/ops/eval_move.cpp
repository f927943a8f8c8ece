// eval_move.cpp - evaluation of what only moves elements: strided copies, joins, looks-up.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/eval.h"
#include "ops/eval_walk.h"

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

TensorPtr strided(const Tensor& x, std::vector<int64_t> dims, const std::vector<int64_t>& strides, int64_t offset) {
  const int bits = info(x.dtype).bits;
  if (bits < 8) {
    NewTensor result(x.dtype, dims);
    Walk(dims, strides, offset).for_each([&](int64_t to, int64_t from) {
      set_element_bits(x.dtype, result.data(), to, element_bits(x, from));
    });
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
  const auto copy = [&]<size_t N>() {
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
  if (x->count() == 0) return NewTensor(x->dtype, *dims).done();
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
    const int64_t size = x->dims[axis], step = steps[i];
    if (step == 0 || step < -(int64_t{1} << 40) || step > int64_t{1} << 40) return {};
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
    strides[axis] *= step;
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
  auto dims = static_dims(n.node().output(0));
  if (!dims || dims->empty()) return {};
  const auto axis = static_cast<size_t>(NodeView::normalized(n.i("axis"), static_cast<int64_t>(dims->size())));
  const DType dtype = n.node().output(0)->type.dtype;
  if (info(dtype).bits < 8) return {};
  NewTensor result(dtype, *dims);
  const auto size = static_cast<size_t>(info(dtype).bits / 8);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < dims->size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : (*dims)[i];
  const size_t row = static_cast<size_t>((*dims)[axis] * inner) * size;
  size_t at = 0;
  for (const Value* input : n.values("inputs")) {
    const Tensor& x = *input->constant;
    if (x.dims.size() != dims->size() || x.dtype != dtype) return {};
    const size_t part = static_cast<size_t>(x.dims[axis] * inner) * size;
    if (static_cast<size_t>(x.count()) * size != part * static_cast<size_t>(outer) || at + part > row) return {};
    for (int64_t i = 0; i < outer && part > 0; ++i) {
      std::memcpy(result.data() + static_cast<size_t>(i) * row + at, x.data.data() + static_cast<size_t>(i) * part,
                  part);
    }
    at += part;
  }
  return at == row ? Results(result.done()) : Results();
}

Results eval_gather(const NodeView& n) {
  const TensorPtr x = n.find_constant("data"), indices = n.find_constant("indices");
  const auto rank = static_cast<int64_t>(x->dims.size());
  if (rank == 0 || info(x->dtype).bits < 8 || !is_integer(indices->dtype)) return {};
  const auto axis = static_cast<size_t>(NodeView::normalized(n.i("axis"), rank));
  const auto offset = static_cast<std::ptrdiff_t>(axis);
  std::vector<int64_t> dims(x->dims.begin(), x->dims.begin() + offset);
  dims.insert(dims.end(), indices->dims.begin(), indices->dims.end());
  dims.insert(dims.end(), x->dims.begin() + offset + 1, x->dims.end());
  NewTensor result(x->dtype, dims);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < x->dims.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x->dims[i];
  const size_t block = static_cast<size_t>(inner) * static_cast<size_t>(info(x->dtype).bits / 8);
  uint8_t* target = result.data();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < indices->count(); ++i) {
      int64_t at = element_as_int(*indices, i);
      require(at >= -x->dims[axis] && at < x->dims[axis], "index {} is out of range for size {}", at, x->dims[axis]);
      if (at < 0) at += x->dims[axis];
      if (block > 0) std::memcpy(target, x->data.data() + static_cast<size_t>(o * x->dims[axis] + at) * block, block);
      target += block;
    }
  }
  return result.done();
}

Results eval_pad(const NodeView& n) {
  const TensorPtr x = n.find_constant("data");
  const auto pads = n.find_const_ints("pads");
  if (n.s("mode") != "constant" || !pads || n.has("axes") || info(x->dtype).bits < 8 || info(x->dtype).bits > 64)
    return {};
  const size_t rank = x->dims.size();
  if (pads->size() != 2 * rank || std::any_of(pads->begin(), pads->end(), [](int64_t p) { return p < 0; })) return {};
  std::vector<int64_t> dims = x->dims;
  for (size_t i = 0; i < rank; ++i) dims[i] += (*pads)[i] + (*pads)[rank + i];
  NewTensor result(x->dtype, dims);
  uint64_t fill = 0;
  if (const TensorPtr value = n.find_constant("constant_value");
      value && value->count() == 1 && value->dtype == x->dtype)
    fill = element_bits(*value, 0);
  else if (n.has("constant_value"))
    return {};
  for (int64_t i = 0; i < result.count(); ++i) set_element_bits(x->dtype, result.data(), i, fill);
  const std::vector<int64_t> strides = strides_of(dims);
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) offset += (*pads)[i] * strides[i];
  Walk(x->dims, strides, offset).for_each([&](int64_t from, int64_t to) {
    set_element_bits(x->dtype, result.data(), to, element_bits(*x, from));
  });
  return result.done();
}

Results eval_constant_of_shape(const NodeView& n) {
  const auto dims = static_dims(n.node().output(0));
  const TensorPtr value = n.find_tensor("value");
  if (!dims) return {};
  const DType dtype = value ? value->dtype : DType::Float32;
  if (info(dtype).bits < 8 || info(dtype).bits > 64) return {};
  NewTensor result(dtype, *dims);
  const uint64_t bits = value ? element_bits(*value, 0) : 0;
  for (int64_t i = 0; bits != 0 && i < result.count(); ++i) set_element_bits(dtype, result.data(), i, bits);
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
