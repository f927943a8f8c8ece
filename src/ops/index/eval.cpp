// eval.cpp - evaluation of what takes or puts elements by index, or by what they are.
#include <algorithm>

#include "ops/frame/eval_elements.h"
#include "ops/index/rows.h"

namespace tonnx {
namespace {

/// Where an element of the data lies, and which element of the indices or updates belongs to it.
struct Place {
  int64_t data, other;
};

/// The places that index tensors as GatherElements and ScatterElements have them point to; nothing where one is
/// outside.
std::optional<std::vector<Place>> element_places(const Tensor& data, const Tensor& indices, int64_t given_axis) {
  const auto rank = static_cast<int64_t>(data.dims.size());
  if (rank == 0 || indices.dims.size() != data.dims.size() || !is_integer(indices.dtype)) return std::nullopt;
  const auto axis = static_cast<size_t>(NodeView::normalized(given_axis, rank));
  for (size_t d = 0; d < data.dims.size(); ++d) {
    if (d != axis && indices.dims[d] > data.dims[d]) return std::nullopt;
  }
  const std::vector<int64_t> strides = strides_of(data.dims);
  std::vector<Place> places(static_cast<size_t>(indices.count()));
  IndexWalk walk(indices.dims);
  for (size_t i = 0; i < places.size(); ++i, walk.next()) {
    int64_t at = 0;
    for (size_t d = 0; d < data.dims.size(); ++d) {
      const int64_t index =
          d == axis ? index_in(element_as_int(indices, static_cast<int64_t>(i)), data.dims[d]) : walk[d];
      if (index < 0) return std::nullopt;
      at += index * strides[d];
    }
    places[i] = {at, static_cast<int64_t>(i)};
  }
  return places;
}

/// The same for the index tensors of GatherND and ScatterND: a place is the first of `block` elements.
std::optional<std::vector<Place>> block_places(const Tensor& data, const Tensor& indices, size_t batch,
                                               int64_t& block) {
  if (indices.dims.empty() || !is_integer(indices.dtype)) return std::nullopt;
  const int64_t wanted = indices.dims.back();
  if (wanted < 0 || wanted > static_cast<int64_t>(data.dims.size()) || batch >= indices.dims.size())
    return std::nullopt;
  const auto depth = static_cast<size_t>(wanted);
  if (batch + depth > data.dims.size()) return std::nullopt;
  const std::vector<int64_t> strides = strides_of(data.dims);
  int64_t per_batch = 1, batches = 1;
  for (size_t d = 0; d < batch; ++d) {
    if (indices.dims[d] != data.dims[d]) return std::nullopt;
    batches *= data.dims[d];
  }
  for (size_t d = batch; d + 1 < indices.dims.size(); ++d) per_batch *= indices.dims[d];
  block = 1;
  for (size_t d = batch + depth; d < data.dims.size(); ++d) block *= data.dims[d];
  const int64_t batch_stride = batch == 0 ? 0 : strides[batch - 1];
  std::vector<Place> places;
  for (int64_t i = 0; i < batches * per_batch; ++i) {
    int64_t at = i / per_batch * batch_stride;
    for (size_t d = 0; d < depth; ++d) {
      const int64_t index =
          index_in(element_as_int(indices, i * wanted + static_cast<int64_t>(d)), data.dims[batch + d]);
      if (index < 0) return std::nullopt;
      at += index * strides[batch + d];
    }
    places.push_back({at, i});
  }
  return places;
}

template <class T>
T combined(std::string_view reduction, T a, T b) {
  if (reduction == "add") return a + b;
  if (reduction == "mul") return a * b;
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a + b;
  }
  return reduction == "max" ? std::max(a, b) : std::min(a, b);
}

/// The data with blocks of updates put, or combined, into it, one after the other.
Results scatter(const Tensor& data, const Tensor& updates, const std::vector<Place>& places, int64_t block,
                std::string_view reduction) {
  if (updates.dtype != data.dtype) return {};
  if (reduction == "none") {
    Elements result(data.dtype, data.dims);
    result.copy(0, data, 0, data.count());
    for (const Place& place : places) result.copy(place.data, updates, place.other * block, block);
    return result.done();
  }
  const bool is_known = reduction == "add" || reduction == "mul" || reduction == "max" || reduction == "min";
  if (!is_known || !is_plain_number(data.dtype) || data.dtype == DType::Bool) return {};
  const auto apply = [&](auto& numbers, auto number_of) {
    for (const Place& place : places) {
      for (int64_t i = 0; i < block; ++i) {
        auto& target = numbers[static_cast<size_t>(place.data + i)];
        target = combined(reduction, target, number_of(place.other * block + i));
      }
    }
  };
  if (is_float(data.dtype)) {
    std::vector<double> numbers = numbers_of(data);
    apply(numbers, [&](int64_t i) { return element_as_double(updates, i); });
    return tensor_of(data.dtype, data.dims, numbers);
  }
  NewTensor result(data.dtype, data.dims);
  const auto with = [&]<class T>(T) {
    std::vector<T> numbers;
    for (int64_t i = 0; i < data.count(); ++i) numbers.push_back(static_cast<T>(element_as_int(data, i)));
    apply(numbers, [&](int64_t i) { return static_cast<T>(element_as_int(updates, i)); });
    for (int64_t i = 0; i < data.count(); ++i) result.set(i, static_cast<int64_t>(numbers[static_cast<size_t>(i)]));
  };
  // sums and products of unsigned numbers are those of signed ones; the order is not
  if (is_unsigned(data.dtype) || reduction == "add" || reduction == "mul")
    with(uint64_t{});
  else
    with(int64_t{});
  return result.done();
}

}  // namespace

Results eval_gather_elements(const NodeView& n) {
  const TensorPtr data = n.find_constant("data"), indices = n.find_constant("indices");
  const auto places = element_places(*data, *indices, n.i("axis"));
  if (!places) return {};
  Elements result(data->dtype, indices->dims);
  for (const Place& place : *places) result.copy(place.other, *data, place.data);
  return result.done();
}

Results eval_gather_nd(const NodeView& n) {
  const TensorPtr data = n.find_constant("data"), indices = n.find_constant("indices");
  const auto dims = static_dims(n.node().output(0));
  const int64_t batch = n.i("batch_dims");
  int64_t block = 0;
  if (!dims || batch < 0 || batch > kMaxRank) return {};
  const auto places = block_places(*data, *indices, static_cast<size_t>(batch), block);
  if (!places) return {};
  Elements result(data->dtype, *dims);
  if (result.count() != static_cast<int64_t>(places->size()) * block) return {};
  for (const Place& place : *places) result.copy(place.other * block, *data, place.data, block);
  return result.done();
}

Results eval_scatter_elements(const NodeView& n) {
  const TensorPtr data = n.find_constant("data"), indices = n.find_constant("indices"),
                  updates = n.find_constant("updates");
  if (updates->dims != indices->dims) return {};
  const auto places = element_places(*data, *indices, n.i("axis"));
  return places ? scatter(*data, *updates, *places, 1, n.s("reduction")) : Results();
}

Results eval_scatter_nd(const NodeView& n) {
  const TensorPtr data = n.find_constant("data"), indices = n.find_constant("indices"),
                  updates = n.find_constant("updates");
  int64_t block = 0;
  const auto places = block_places(*data, *indices, 0, block);
  if (!places || updates->count() != static_cast<int64_t>(places->size()) * block) return {};
  return scatter(*data, *updates, *places, block, n.s("reduction"));
}

Results eval_tensor_scatter(const NodeView& n) {
  const TensorPtr past = n.find_constant("past_cache"), update = n.find_constant("update"),
                  starts = n.find_constant("write_indices");
  const auto rank = static_cast<int64_t>(past->dims.size());
  const std::string mode = n.s("mode");
  if (rank < 2 || update->dims.size() != past->dims.size() || update->dtype != past->dtype ||
      (starts && !is_integer(starts->dtype)))
    return {};
  const auto axis = static_cast<size_t>(NodeView::normalized(n.i("axis"), rank));
  for (size_t d = 0; d < past->dims.size(); ++d) {
    if (d == axis ? update->dims[d] > past->dims[d] : update->dims[d] != past->dims[d]) return {};
  }
  if (axis == 0 || (starts && starts->count() != past->dims[0]) || (mode != "linear" && mode != "circular")) return {};
  const AroundAxis around = around_axis(past->dims, axis);
  const int64_t length = update->dims[axis], per_batch = past->dims[0] == 0 ? 1 : around.outer / past->dims[0];
  Elements result(past->dtype, past->dims);
  result.copy(0, *past, 0, past->count());
  for (int64_t o = 0; o < around.outer; ++o) {
    const int64_t start = starts ? element_as_int(*starts, o / per_batch) : 0;
    if (start < 0 || start >= around.size || (mode == "linear" && start > around.size - length)) return {};
    for (int64_t i = 0; i < length; ++i) {
      result.copy((o * around.size + (start + i) % around.size) * around.inner, *update,
                  (o * length + i) * around.inner, around.inner);
    }
  }
  return result.done();
}

Results eval_one_hot(const NodeView& n) {
  const TensorPtr indices = n.find_constant("indices"), values = n.find_constant("values");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || values->count() != 2 || !is_plain_number(indices->dtype)) return {};
  const auto axis = static_cast<size_t>(NodeView::normalized(n.i("axis"), static_cast<int64_t>(dims->size())));
  const AroundAxis around = around_axis(*dims, axis);
  Elements result(values->dtype, *dims);
  result.fill(*values, 0);
  if (indices->count() != around.outer * around.inner) return {};
  for (int64_t i = 0; i < indices->count(); ++i) {
    const int64_t at = index_in(element_as_int(*indices, i), around.size);
    if (at >= 0) {
      result.copy((i / around.inner * around.size + at) * around.inner + i % around.inner, *values, 1);
    }
  }
  return result.done();
}

Results eval_non_zero(const NodeView& n) {
  const TensorPtr x = n.find_constant("X");
  if (!is_plain_number(x->dtype) && x->dtype != DType::String) return {};
  const auto is_set = [&](int64_t i) {
    if (x->dtype == DType::String) return !x->strings[static_cast<size_t>(i)].empty();
    return is_float(x->dtype) ? element_as_double(*x, i) != 0 : element_as_int(*x, i) != 0;
  };
  // a scalar counts as a list of one
  const Ints dims = x->dims.empty() ? Ints{1} : x->dims;
  int64_t found = 0;
  for (int64_t i = 0; i < x->count(); ++i) found += is_set(i) ? 1 : 0;
  NewTensor result(DType::Int64, {static_cast<int64_t>(dims.size()), found});
  IndexWalk walk(dims);
  int64_t to = 0;
  for (int64_t i = 0; i < x->count(); ++i, walk.next()) {
    if (!is_set(i)) continue;
    for (size_t d = 0; d < dims.size(); ++d) result.set(static_cast<int64_t>(d) * found + to, walk[d]);
    ++to;
  }
  return result.done();
}

Results eval_compress(const NodeView& n) {
  const TensorPtr x = n.find_constant("input"), condition = n.find_constant("condition");
  if (condition->dtype != DType::Bool || condition->dims.size() != 1) return {};
  Ints dims = n.has("axis") ? x->dims : Ints{x->count()};
  if (dims.empty()) return {};
  const auto axis = n.has("axis") ? static_cast<size_t>(n.axis("axis", "input")) : 0;
  const AroundAxis around = around_axis(dims, axis);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < condition->count(); ++i) {
    if (element_as_int(*condition, i) == 0) continue;
    if (i >= around.size) return {};
    kept.push_back(i);
  }
  dims[axis] = static_cast<int64_t>(kept.size());
  Elements result(x->dtype, dims);
  int64_t to = 0;
  for (int64_t o = 0; o < around.outer; ++o) {
    for (const int64_t i : kept) {
      result.copy(to, *x, (o * around.size + i) * around.inner, around.inner);
      to += around.inner;
    }
  }
  return result.done();
}

Results eval_reverse_sequence(const NodeView& n) {
  const TensorPtr x = n.find_constant("input"), lengths = n.find_constant("sequence_lens");
  const auto rank = static_cast<int64_t>(x->dims.size());
  if (rank < 2 || !is_integer(lengths->dtype)) return {};
  const auto batch_axis = static_cast<size_t>(n.axis("batch_axis", "input"));
  const auto time_axis = static_cast<size_t>(n.axis("time_axis", "input"));
  if (batch_axis == time_axis || lengths->count() != x->dims[batch_axis]) return {};
  const std::vector<int64_t> strides = strides_of(x->dims);
  Elements result(x->dtype, x->dims);
  IndexWalk walk(x->dims);
  for (int64_t to = 0; to < result.count(); ++to, walk.next()) {
    const int64_t length = element_as_int(*lengths, walk[batch_axis]), time = walk[time_axis];
    if (length < 0 || length > x->dims[time_axis]) return {};
    const int64_t from = time < length ? length - 1 - time : time;
    result.copy(to, *x, to + (from - time) * strides[time_axis]);
  }
  return result.done();
}

}  // namespace tonnx
