// size_node.cpp - sizes that operators of several families ask to be equal.
#include "ops/frame/size_node.h"

namespace tonnx {

const Shape* SizeNode::shape(size_t input) const {
  const Value* value = input < node_->inputs().size() ? node_->inputs()[input] : nullptr;
  return value != nullptr && value->type.is_tensor() && value->type.shape ? &*value->type.shape : nullptr;
}

const Dim* SizeNode::size(size_t input, int64_t axis) const {
  const Shape* sizes = shape(input);
  if (sizes == nullptr) return nullptr;
  const auto rank = static_cast<int64_t>(sizes->size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? &(*sizes)[static_cast<size_t>(axis)] : nullptr;
}

void SizeNode::equal(const Dim* a, const Dim* b) const {
  if (a != nullptr && b != nullptr) equal_(*a, *b);
}

void sizes_of_channels(SizeNode& n) { n.equal(n.size(0, 1), n.size(1, 0)); }

void sizes_of_last_axis(SizeNode& n) { n.equal(n.size(0, -1), n.size(1, -1)); }

void sizes_of_recurrent(SizeNode& n) {
  const int64_t batch = int_of(n.node(), "layout").value_or(0) != 0 ? 0 : 1;
  n.equal(n.size(0, 2), n.size(1, 2));
  for (const size_t state : {size_t{5}, size_t{6}}) {
    n.equal(n.size(state, batch), n.size(0, batch));
    n.equal(n.size(state, 2), n.size(2, 2));
  }
}

void sizes_of_elements(SizeNode& n) {
  const Value* output = n.node().outputs().empty() ? nullptr : n.node().output(0);
  const Shape* from = n.shape(0);
  if (from == nullptr || output == nullptr || !output->type.is_tensor() || !output->type.shape) return;
  const Dim before = count_of(*from), after = count_of(*output->type.shape);
  if (after.is_constant()) n.equal(&before, &after);
}

void sizes_of_joined(SizeNode& n) {
  const Shape* first = n.shape(0);
  if (first == nullptr) return;
  const auto rank = static_cast<int64_t>(first->size());
  int64_t axis = int_of(n.node(), "axis").value_or(0);
  if (axis < 0) axis += rank;
  for (size_t i = 1; i < n.node().inputs().size(); ++i) {
    for (int64_t d = 0; d < rank; ++d) {
      if (d != axis) n.equal(n.size(0, d), n.size(i, d));
    }
  }
}

}  // namespace tonnx
