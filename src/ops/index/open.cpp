// open.cpp - Gather, Scatter and their kin where the axis that is indexed holds samples: each sample has its own
// places.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/node_facts.h"
#include "ops/frame/node_view.h"
#include "ops/index/rows.h"

namespace tonnx {
namespace {

/// How many elements of the axis one sample has, and how many samples there are, where the axis was that of one sample.
struct SampleAxis {
  Dim count;
  Dim stride;
};

std::optional<SampleAxis> find_samples(const OpenNode& n, size_t axis) {
  const Shape* now = n.shape(0);
  if (now == nullptr || axis >= now->size() || !n.is_open((*now)[axis])) return std::nullopt;
  const SizeParts parts = n.parts(0)[axis];
  if (parts.empty() || !n.is_open(parts[0].now) || !parts[0].fixed.is(1)) return std::nullopt;
  SampleAxis result{parts[0].now, 1};
  for (size_t i = 1; i < parts.size(); ++i) result.stride = result.stride * parts[i].now;
  return result;
}

/// The dimension of indices along which the samples lie: the one that is as long as there are samples, or else the
/// first of size 1.
std::optional<size_t> sample_dim(const OpenNode& n, size_t input, size_t rank, const Dim& count) {
  const Shape *now = n.shape(input), *fixed = n.fixed_shape(input);
  if (now == nullptr || fixed == nullptr || now->size() != fixed->size()) return std::nullopt;
  for (size_t i = 0; i < std::min(rank, now->size()); ++i) {
    if ((*now)[i] == count) return i;
  }
  for (size_t i = 0; i < std::min(rank, now->size()); ++i) {
    if ((*now)[i].is(1)) return i;
  }
  return std::nullopt;
}

/// Counts up the first elements of the samples along one dimension of a tensor of that rank.
Value* first_elements(OpenNode& n, const SampleAxis& samples, size_t dim, size_t rank) {
  std::vector<int64_t> dims(rank, 1);
  dims[dim] = -1;
  return n.add("Reshape", {n.count_up(samples.count, samples.stride), n.ints(dims, {static_cast<int64_t>(rank)})});
}

bool may_be_negative(const Value& indices) {
  constexpr int64_t kLongest = 1 << 20;
  const auto numbers = indices.constant ? ints_of(*indices.constant, kLongest) : std::nullopt;
  return !numbers || std::any_of(numbers->begin(), numbers->end(), [](int64_t each) { return each < 0; });
}

Value* as_int64(OpenNode& n, Value* value) {
  if (value->type.dtype == DType::Int64) return value;
  return n.add("Cast", {value}, {Attribute("to", static_cast<int64_t>(DType::Int64))});
}

[[noreturn]] void refuse_choice(const OpenNode& n, const Dim& count) {
  n.refuse(fmt::format("it takes one of the {} samples", count.text()));
}

/// Indices along one axis: those of each sample lie within its own part of the axis.
void offset_indices(OpenNode& n, size_t input, const SampleAxis& samples) {
  Value* indices = n.node().input(input);
  if (indices == nullptr || n.follows_sizes(indices)) return;
  const Shape* shape = n.shape(input);
  const auto dim = shape != nullptr ? sample_dim(n, input, shape->size(), samples.count) : std::nullopt;
  if (!dim) refuse_choice(n, samples.count);
  const size_t rank = shape->size();
  Value* places = as_int64(n, indices);
  if (may_be_negative(*indices)) {
    const auto stride = samples.stride.constant();
    if (!stride) n.refuse("its indices may be negative, and how many elements a sample has is open");
    places = n.add("Mod", {places, n.ints({*stride}, {})});
  }
  n.node().set_input(input, n.add("Add", {places, first_elements(n, samples, *dim, rank)}));
}

std::optional<size_t> axis_of(const OpenNode& n) {
  const Shape* shape = n.shape(0);
  if (shape == nullptr) return std::nullopt;
  const auto axis = from_front(int_of(n.node(), "axis").value_or(0), static_cast<int64_t>(shape->size()));
  return axis ? std::optional(static_cast<size_t>(*axis)) : std::nullopt;
}

/// Makes the dimensions of indices, and of updates, as long as those of the samples of the data.
void follow_samples(OpenNode& n, size_t input, std::optional<size_t> but) {
  const Shape *data = n.shape(0), *fixed = n.fixed_shape(0);
  for (size_t i = 0; i < data->size(); ++i) {
    const Shape* shape = n.shape(input);
    if (shape == nullptr || shape->size() != data->size() || fixed == nullptr) return;
    const bool is_whole = !n.is_open((*shape)[i]) && (*fixed)[i] == (*shape)[i];
    if (i != but && n.is_open((*data)[i]) && is_whole) n.grow(input, i, (*data)[i]);
  }
}

/// Makes the data, which the file fixes, as long as the indices, but along the axis that they index.
void follow_indices(OpenNode& n, size_t axis) {
  const Shape *data = n.shape(0), *indices = n.shape(1);
  if (data == nullptr || indices == nullptr || data->size() != indices->size()) return;
  const size_t rank = data->size();
  for (size_t i = 0; i < rank; ++i) {
    if (i != axis && n.is_open((*n.shape(1))[i])) align(n, {{0, i}, {1, i}});
  }
}

/// The value that column `column` of a list of places comes from; the whole list where it is not joined from columns.
const Value* source_of_column(const Value* indices, int64_t column) {
  const Node* join = producer_of(indices, "Concat");
  const auto rank = indices->type.rank();
  const auto axis = join && rank ? from_front(int_of(*join, "axis").value_or(0), *rank) : std::nullopt;
  if (!axis || *axis != *rank - 1) return indices;
  for (const Value* part : join->inputs()) {
    const auto width =
        part->type.shape && !part->type.shape->empty() ? part->type.shape->back().constant() : std::nullopt;
    if (!width) return indices;
    if (column < *width) return part;
    column -= *width;
  }
  return indices;
}

/// Places of several axes at once, one column for each.
void offset_places(OpenNode& n, size_t first_axis) {
  constexpr size_t kIndices = 1;
  Value* indices = n.node().input(kIndices);
  const Shape* shape = n.shape(kIndices);
  const auto columns = shape != nullptr && !shape->empty() ? shape->back().constant() : std::nullopt;
  if (!columns) return;
  const size_t rank = shape->size();
  for (int64_t column = 0; column < *columns; ++column) {
    const auto samples = find_samples(n, first_axis + static_cast<size_t>(column));
    if (!samples || n.follows_sizes(source_of_column(indices, column))) continue;
    const auto dim = sample_dim(n, kIndices, rank - 1, samples->count);
    if (!dim) refuse_choice(n, samples->count);
    std::vector<int64_t> is_column(static_cast<size_t>(*columns), 0);
    is_column[static_cast<size_t>(column)] = 1;
    std::vector<int64_t> dims(rank, 1);
    dims.back() = *columns;
    Value* offset = n.add("Mul", {first_elements(n, *samples, *dim, rank), n.ints(is_column, dims)});
    n.node().set_input(kIndices, n.add("Add", {n.node().input(kIndices), offset}));
  }
}

}  // namespace

void open_gather(OpenNode& n) {
  const auto axis = axis_of(n);
  const auto samples = axis ? find_samples(n, *axis) : std::nullopt;
  if (samples) offset_indices(n, 1, *samples);
}

void open_gather_elements(OpenNode& n) {
  const auto axis = axis_of(n);
  if (axis) follow_indices(n, *axis);
  if (!axis || !n.is_open(size_t{0})) return;
  follow_samples(n, 1, axis);
  if (const auto samples = find_samples(n, *axis)) offset_indices(n, 1, *samples);
}

void open_gather_nd(OpenNode& n) {
  if (!n.is_open(size_t{0})) return;
  offset_places(n, static_cast<size_t>(int_of(n.node(), "batch_dims").value_or(0)));
}

void open_scatter_elements(OpenNode& n) {
  const auto axis = axis_of(n);
  if (axis) follow_indices(n, *axis);
  if (!axis || !n.is_open(size_t{0})) return;
  follow_samples(n, 1, axis);
  follow_samples(n, 2, axis);
  if (const auto samples = find_samples(n, *axis)) offset_indices(n, 1, *samples);
}

void open_scatter_nd(OpenNode& n) {
  constexpr size_t kIndices = 1, kUpdates = 2;
  if (!n.is_open(size_t{0})) return;
  offset_places(n, 0);
  // what is written at the places of each sample
  const Shape *places = n.shape(kIndices), *updates = n.shape(kUpdates), *fixed = n.fixed_shape(kUpdates);
  if (places == nullptr || updates == nullptr || fixed == nullptr) return;
  for (size_t i = 0; i + 1 < places->size() && i < updates->size(); ++i) {
    if (n.is_open((*places)[i]) && (*updates)[i].is_constant()) n.grow(kUpdates, i, (*places)[i]);
  }
  // and along the axes that are written as a whole
  const auto columns = places->back().constant();
  const Shape* data = n.shape(0);
  if (!columns) return;
  for (size_t i = static_cast<size_t>(*columns); i < data->size(); ++i) {
    const size_t at = places->size() - 1 + i - static_cast<size_t>(*columns);
    if (at < n.shape(kUpdates)->size() && n.is_open((*data)[i]) && !n.is_open((*n.shape(kUpdates))[at]))
      n.grow(kUpdates, at, (*data)[i]);
  }
}

}  // namespace tonnx
