// transposes.h - orders of axes, the Transposes that make them, and nodes that can work in another order.
#pragma once
#include <span>

#include "passes/frame/rewriter.h"

namespace tonnx {

/// Axis i of what a Transpose gives is axis perm[i] of what it is given.
using Perm = std::vector<int64_t>;

/// The order that a Transpose makes, as numbers of all axes; nothing for other nodes, and where it is not known.
std::optional<Perm> perm_of(const Node& node);
/// First the one, then the other.
Perm combined(const Perm& first, const Perm& then);
Perm inverse_of(const Perm& perm);
bool is_identity(const Perm& perm);

/// A constant that is not too large to be brought into another order.
bool can_reorder(const Value& value);
/// A constant with its axes in another order. One with fewer axes gets axes of size 1 in front first.
TensorPtr in_order(const Tensor& tensor, const Perm& perm);

/// A node that gives its output in another order, because its inputs are.
struct Reordered {
  struct Input {
    Value* value;
    Perm perm;  // that the input is to be brought into; empty: it stays as it is
  };
  std::vector<Input> inputs;
  std::vector<std::vector<int64_t>> lists = {};  // constant inputs behind the others
  std::vector<Attribute> attributes = {};
  bool is_copy = false;  // as the node's own opset has it; otherwise as the newest one has it
};
/// How a node gives its output in that order; nothing where it cannot.
std::optional<Reordered> reorder(const Node& node, const Perm& perm);

/// How a node that removes axes gives the same of what its first input is before a Transpose; nothing where it cannot.
std::optional<Reordered> without_transpose(const Node& node, const Perm& perm);

}  // namespace tonnx
