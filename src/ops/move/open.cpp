// open.cpp - Concat, Split and Slice of tensors that have an open size.
#include <algorithm>

#include "ops/frame/node_facts.h"
#include "ops/frame/node_view.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

std::optional<size_t> axis_of(const OpenNode& n, size_t rank, int64_t otherwise) {
  const Attribute* given = n.node().find_attribute("axis");
  const auto* number = given ? given->value.get<int64_t>() : nullptr;
  const auto axis = from_front(number ? *number : otherwise, static_cast<int64_t>(rank));
  return axis ? std::optional(static_cast<size_t>(*axis)) : std::nullopt;
}

}  // namespace

/// What is put beside a tensor with an open size is as long: constants of one row are repeated.
void open_concat(OpenNode& n) {
  const size_t count = n.node().inputs().size();
  const Shape* first = n.shape(0);
  const auto axis = first != nullptr ? axis_of(n, first->size(), 1) : std::nullopt;
  if (!axis) return;
  const size_t rank = first->size();
  for (size_t d = 0; d < rank; ++d) {
    if (d == *axis) continue;
    std::vector<InputAxis> places;
    for (size_t i = 0; i < count; ++i) {
      const Shape* shape = n.shape(i);
      if (shape == nullptr || shape->size() != rank) return;
      places.push_back({i, d});
    }
    align(n, places);
  }
}

/// Parts of an open axis: as many equal ones as before; the one part that is all of it.
void open_split(OpenNode& n) {
  const Shape *now = n.shape(0), *fixed = n.fixed_shape(0);
  const auto axis = now != nullptr ? axis_of(n, now->size(), 0) : std::nullopt;
  if (!axis || fixed == nullptr || !n.is_open((*now)[*axis])) return;
  const auto parts = n.list(1, "split");
  if (!parts) return;
  const Dim& size = (*now)[*axis];
  Dim sum;
  for (const Dim& part : *parts) sum = sum + part;
  if (sum == size) return;
  const auto each = exact_div(size, static_cast<int64_t>(parts->size()));
  const bool is_even = std::all_of(parts->begin(), parts->end(), [&](const Dim& part) { return part == (*parts)[0]; });
  if (!is_even)
    n.refuse(fmt::format("axis {} is split in parts of fixed sizes, and its size {} is open", *axis, size.text()));
  n.set_list(1, "split", Dims(parts->size(), each ? *each : floor_div(size, static_cast<int64_t>(parts->size()))));
}

/// An end that was the end of the axis is its end still.
void open_slice(OpenNode& n) {
  const Shape *now = n.shape(0), *fixed = n.fixed_shape(0);
  auto starts = n.list(1, "starts"), ends = n.list(2, "ends");
  if (now == nullptr || fixed == nullptr || !starts || !ends || !n.is_open(now)) return;
  const auto axes = n.list(3, "axes"), steps = n.list(4, "steps");
  bool changes_ends = false, changes_starts = false;
  for (size_t i = 0; i < ends->size() && i < starts->size(); ++i) {
    const auto given = axes && i < axes->size() ? (*axes)[i].constant() : std::optional(static_cast<int64_t>(i));
    const auto axis = given ? from_front(*given, static_cast<int64_t>(now->size())) : std::nullopt;
    if (!axis || !n.is_open((*now)[static_cast<size_t>(*axis)])) continue;
    const auto size = (*fixed)[static_cast<size_t>(*axis)].constant();
    const auto start = (*starts)[i].constant(), end = (*ends)[i].constant();
    const auto step = steps && i < steps->size() ? (*steps)[i].constant() : std::optional<int64_t>(1);
    if (!size || !start || !end || !step) continue;
    if (*step < 0) {
      if (*start >= *size - 1 && *start < INT32_MAX) {
        (*starts)[i] = INT64_MAX;
        changes_starts = true;
      }
      if (*end<-*size&& * end> INT32_MIN) {
        (*ends)[i] = INT64_MIN + 1;
        changes_ends = true;
      }
    } else if (*end >= *size && *end < INT32_MAX) {
      (*ends)[i] = INT64_MAX;
      changes_ends = true;
    }
  }
  if (changes_starts) n.set_list(1, "starts", *starts);
  if (changes_ends) n.set_list(2, "ends", *ends);
}

}  // namespace tonnx
