// open_node.cpp - opening of nodes that many operators share.
#include "ops/frame/open_node.h"

#include <algorithm>

#include "base/error.h"
#include "ops/frame/node_facts.h"
#include "ops/frame/node_view.h"

namespace tonnx {

const Shape* OpenNode::shape(size_t input) const {
  const Value* value = node_->input(input);
  return value != nullptr && value->type.shape ? &*value->type.shape : nullptr;
}

const Shape* OpenNode::fixed_shape(size_t input) const {
  const Type* type = fixed_type(node_->input(input));
  return type != nullptr && type->shape ? &*type->shape : nullptr;
}

const Shape* OpenNode::fixed_output(size_t output) const {
  const Type* type = fixed_type(node_->output(output));
  return type != nullptr && type->shape ? &*type->shape : nullptr;
}

bool OpenNode::is_open(const Shape* shape) const {
  return shape != nullptr && std::any_of(shape->begin(), shape->end(), [&](const Dim& size) { return is_open(size); });
}

bool OpenNode::is_open(size_t input) const { return is_open(shape(input)); }

std::optional<Dims> OpenNode::list(size_t input, std::string_view name) const {
  if (const auto given = ints_of(*node_, name)) return Dims(given->begin(), given->end());
  const Value* value = node_->input(input);
  return value != nullptr ? find_dims(*value) : std::nullopt;
}

void OpenNode::refuse(const std::string& why) const { fail_unsupported("{}", why); }

namespace {

const Dim* size_at(const OpenNode& n, const InputAxis& place) {
  const Shape* shape = n.shape(place.input);
  return shape != nullptr && place.axis < shape->size() ? &(*shape)[place.axis] : nullptr;
}

/// The open dimension that the others follow: not one that was resized, whose size may be another than it seems, and of
/// several the one of which most is known.
const InputAxis* find_leader(const OpenNode& n, const std::vector<InputAxis>& places) {
  const InputAxis* leader = nullptr;
  for (const InputAxis& place : places) {
    const Dim* size = size_at(n, place);
    if (size == nullptr || !n.is_open(*size)) continue;
    const bool is_resized = n.is_resized(place.input, place.axis);
    if (leader != nullptr) {
      const bool was_resized = n.is_resized(leader->input, leader->axis);
      if (is_resized != was_resized ? is_resized : size->text().size() <= size_at(n, *leader)->text().size()) continue;
    }
    leader = &place;
  }
  return leader;
}

}  // namespace

void align(OpenNode& n, const std::vector<InputAxis>& places) {
  const InputAxis* leader = find_leader(n, places);
  if (leader == nullptr) return;
  const Dim target = *size_at(n, *leader);
  const SizeParts parts = n.parts(leader->input)[leader->axis];
  for (const InputAxis& place : places) {
    const Dim* size = size_at(n, place);
    if (size == nullptr || *size == target) continue;
    if (n.is_open(*size) ? n.is_resized(place.input, place.axis) : size->is_constant() && n.fixed(target) == *size) {
      if (n.is_resized(place.input, place.axis))
        n.resize(place.input, place.axis, target);
      else
        n.grow(place.input, place.axis, target, parts);
    }
  }
}

namespace {

/// Lets constants follow whose sizes stand where others have an open one. The last `kept` dimensions are left alone.
void follow_broadcast(OpenNode& n, size_t kept) {
  const size_t count = n.node().inputs().size();
  size_t rank = 0;
  for (size_t i = 0; i < count; ++i) {
    if (const Shape* shape = n.shape(i)) rank = std::max(rank, shape->size());
  }
  for (size_t back = kept + 1; back <= rank; ++back) {
    std::vector<InputAxis> places;  // those of size 1 are spread by the node itself
    for (size_t i = 0; i < count; ++i) {
      const Shape* shape = n.shape(i);
      if (shape != nullptr && shape->size() >= back && !(*shape)[shape->size() - back].is(1))
        places.push_back({i, shape->size() - back});
    }
    const InputAxis* leader = find_leader(n, places);
    if (leader == nullptr) continue;
    const Dim& target = *size_at(n, *leader);
    for (const InputAxis& place : places) {
      const Dim& size = *size_at(n, place);
      if (size.is_constant() && !(n.fixed(target) == size))
        n.refuse(fmt::format("a size of {} meets one of {}, which only a size of 1 can be spread to", target.text(),
                             size.text()));
    }
    align(n, places);
  }
}

}  // namespace

void open_broadcast(OpenNode& n) { follow_broadcast(n, 0); }

void open_matrices(OpenNode& n) {
  constexpr size_t kMatrix = 2;
  follow_broadcast(n, kMatrix);
}

namespace {

void keep_apart_from(const OpenNode& n, size_t first) {
  const Shape* shape = n.shape(0);
  for (size_t axis = first; shape != nullptr && axis < shape->size(); ++axis) n.keep_apart(0, axis);
}

std::optional<size_t> axis_of(const OpenNode& n) {
  const Shape* shape = n.shape(0);
  if (shape == nullptr || (has(n.node(), "axis") && !int_of(n.node(), "axis"))) return std::nullopt;
  const auto axis = from_front(int_of(n.node(), "axis").value_or(-1), static_cast<int64_t>(shape->size()));
  return axis ? std::optional(static_cast<size_t>(*axis)) : std::nullopt;
}

}  // namespace

void open_along_axis(OpenNode& n) {
  if (const auto axis = axis_of(n)) n.keep_apart(0, *axis);
}

void open_from_axis(OpenNode& n) {
  if (const auto axis = axis_of(n)) keep_apart_from(n, *axis);
}

void open_samples(OpenNode& n) { keep_apart_from(n, 1); }

}  // namespace tonnx
