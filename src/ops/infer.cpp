// infer.cpp - inferences that many operators share.
#include "ops/infer.h"

#include <algorithm>

#include "base/error.h"

namespace tonnx {

void InferNode::set(size_t output, Type type) {
  Value* value = node_->output(output);
  if (value != nullptr) value->type = std::move(type);
}

void InferNode::set_dims(std::vector<Dim> elements) {
  if (Value* value = node_->output(0)) value->known_ints = std::move(elements);
}

Dim InferNode::declared_or_fresh(size_t output, size_t dim, size_t rank, const Shape& input) {
  const Value* value = node_->output(output);
  const bool fits = value && value->type.shape && value->type.shape->size() == rank;
  if (fits && value->type.shape->at(dim).is_constant() &&
      std::all_of(input.begin(), input.end(), [](const Dim& size) { return size.is_constant(); })) {
    return value->type.shape->at(dim);
  }
  return fresh();
}

void infer_same_as_first(InferNode& n) {
  if (const Value* first = n.node().input(0)) n.set(0, first->type);
}

std::optional<Shape> broadcast(const std::optional<Shape>& a, const std::optional<Shape>& b, FreshDims* fresh) {
  if (!a || !b) return std::nullopt;
  const Shape& longer = a->size() >= b->size() ? *a : *b;
  const Shape& shorter = a->size() >= b->size() ? *b : *a;
  Shape result = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim& x = longer[i + shift];
    const Dim& y = shorter[i];
    if (x == y || y.is(1)) continue;
    if (x.is(1)) {
      result[i + shift] = y;
    } else if (x.is_constant() && y.is_constant()) {
      fail_invalid("sizes {} and {} cannot be broadcast together", x.text(), y.text());
    } else if (y.is_constant()) {
      result[i + shift] = y;  // the symbolic one must be equal to it, or 1
    } else if (!x.is_constant()) {
      result[i + shift] = fresh ? fresh->next() : max(x, y);
    }
  }
  return result;
}

namespace {

void infer_elementwise(InferNode& n, DType dtype) {
  std::optional<Shape> shape = Shape{};
  for (const Value* input : n.node().inputs()) {
    if (input != nullptr) shape = broadcast(shape, input->type.shape);
  }
  n.set(0, dtype, std::move(shape));
}

}  // namespace

void infer_broadcast(InferNode& n) {
  const Value* first = n.node().input(0);
  infer_elementwise(n, first ? first->type.dtype : DType::Undefined);
}

void infer_compare(InferNode& n) { infer_elementwise(n, DType::Bool); }

}  // namespace tonnx
