// same_value.cpp - rules of rows that say which of a node's inputs its first output is.
#include "ops/frame/same_value.h"

namespace tonnx {
namespace {

Value* beside(const Node& node, size_t constant, double neutral) {
  Value* x = node.input(1 - constant);
  const bool is_neutral = x && node.inputs().size() == 2 && have_same_type(x, node.output(0)) &&
                          uniform_value(node.input(constant)) == neutral;
  return is_neutral ? x : nullptr;
}

}  // namespace

bool keeps_type(const Node& node) { return node.input(0) && have_same_type(node.input(0), node.output(0)); }

Value* same_as_first(const Node& node) { return node.input(0); }

Value* same_where_shape_stays(const Node& node) { return keeps_type(node) ? node.input(0) : nullptr; }

Value* same_of_one(const Node& node) { return node.inputs().size() == 1 ? node.input(0) : nullptr; }

Value* same_beside_0(const Node& node) {
  Value* x = beside(node, 1, 0);
  return x ? x : beside(node, 0, 0);
}
Value* same_before_0(const Node& node) { return beside(node, 1, 0); }

Value* same_beside_1(const Node& node) {
  Value* x = beside(node, 1, 1);
  return x ? x : beside(node, 0, 1);
}
Value* same_before_1(const Node& node) { return beside(node, 1, 1); }

Value* same_of_twice(const Node& node) {
  const Node* before = producer_of(node.input(0), node.op);
  return before ? before->input(0) : nullptr;
}

Value* same_of_positive(const Node& node) {
  static const Symbol kClip("Clip");
  Value* x = node.input(0);
  if (producer_with(x, kNotNegative)) {
    // the lowest integer has no positive counterpart
    return is_float(x->type.dtype) || node.op == x->producer->op ? x : nullptr;
  }
  const Node* clip = producer_of(x, kClip);
  const auto min = clip ? float_of(*clip, "min") : std::nullopt;
  const auto max = clip ? float_of(*clip, "max") : std::nullopt;
  return min && *min >= 0 && (!has(*clip, "max") || (max && *max >= 0)) ? x : nullptr;
}

}  // namespace tonnx
