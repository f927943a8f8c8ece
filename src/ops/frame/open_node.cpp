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

/// Lets constants follow whose sizes stand where others have an open one. The last `kept` dimensions are left alone.
void follow_broadcast(OpenNode& n, size_t kept) {
  const size_t count = n.node().inputs().size();
  size_t rank = 0;
  for (size_t i = 0; i < count; ++i) {
    if (const Shape* shape = n.shape(i)) rank = std::max(rank, shape->size());
  }
  for (size_t back = kept + 1; back <= rank; ++back) {
    const auto size_of = [&](size_t i) -> const Dim* {
      const Shape* shape = n.shape(i);
      return shape != nullptr && shape->size() >= back ? &(*shape)[shape->size() - back] : nullptr;
    };
    const Dim* open = nullptr;
    for (size_t i = 0; i < count; ++i) {
      const Dim* size = size_of(i);
      if (size != nullptr && n.is_open(*size) && (open == nullptr || open->text().size() > size->text().size()))
        open = size;
    }
    if (open == nullptr) continue;
    const Dim target = *open;
    for (size_t i = 0; i < count; ++i) {
      const Dim* size = size_of(i);
      if (size == nullptr || size->is(1) || *size == target || n.is_open(*size) || !size->is_constant()) continue;
      if (!(n.fixed(target) == *size))
        n.refuse(fmt::format("a size of {} meets one of {}, which only a size of 1 can be spread to", target.text(),
                             size->text()));
      n.grow(i, n.shape(i)->size() - back, target);
    }
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
