// remove_redundant_broadcasts.cpp - tensors that are made larger by repetition for nodes that would repeat them
// themselves stay small.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ops/frame/infer.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

constexpr size_t kMostUses = 256;  // that are looked at for one tensor

const Symbol kAnd("And"), kOr("Or"), kPRelu("PRelu");

/// What the node only repeats along some of its axes; null where it does something else.
Value* repeated(const Node& node) {
  if (is_onnx(node, kExpand)) return node.input(0);
  if (is_onnx(node, kWhere)) {
    const auto chosen = uniform_value(node.input(0));
    return chosen ? node.input(*chosen != 0 ? 1 : 2) : nullptr;
  }
  const bool is_product = is_onnx(node, kAnd) || is_onnx(node, kMul), is_or = is_onnx(node, kOr);
  if (!is_product && !is_or) return nullptr;
  for (const size_t i : {0U, 1U}) {
    const auto number = uniform_value(node.input(1 - i));
    if (number && *number == (is_or ? 0.0 : 1.0)) return node.input(i);
  }
  return nullptr;
}

/// Which nodes give less if a tensor is not repeated, until others of their inputs are as large as it was.
class Narrowing {
 public:
  /// Whether nobody needs all of it.
  bool find(Value* wide, const Shape& narrow) {
    shapes_[wide] = narrow;
    std::vector<Value*> values{wide};
    for (size_t i = 0, uses = 0; i < values.size(); ++i) {
      uses += values[i]->uses.size();
      if (uses > kMostUses) return false;
      for (const Use& use : values[i]->uses) {
        if (use.user == nullptr || use.user->graph != wide->graph || !look_at(*use.user, values)) return false;
      }
    }
    return true;
  }

  /// The nodes whose results are smaller then, in their order; not the one that repeats.
  std::vector<Node*> changed(Node& first) const {
    std::vector<Node*> nodes;
    for (Node* node = first.next; node != nullptr && nodes.size() + 1 < shapes_.size(); node = node->next) {
      if (node->outputs().size() == 1 && shapes_.contains(node->output(0))) nodes.push_back(node);
    }
    return nodes;
  }

 private:
  bool look_at(Node& user, std::vector<Value*>& values) {
    if (!has_trait(user, kElementwise) || is_onnx(user, kPRelu) || user.outputs().size() != 1) return false;
    std::optional<Shape> shape(std::in_place);
    for (const Value* input : user.inputs()) {
      if (input == nullptr) continue;
      const auto known = shapes_.find(input);
      shape = broadcast(shape, known == shapes_.end() ? input->type.shape : std::optional(known->second));
    }
    Value* output = user.output(0);
    if (!shape || !output->type.shape) return false;
    if (*shape == *output->type.shape) return true;
    const auto [at, fresh] = shapes_.try_emplace(output, *shape);
    if (!fresh && at->second == *shape) return true;
    at->second = *shape;
    values.push_back(output);
    return true;
  }

  std::unordered_map<const Value*, Shape> shapes_;
};

}  // namespace

/// 1. Expand, And with what is all true, a choice that is always the same, and the like, go where the nodes behind them
/// broadcast.
bool remove_redundant_broadcasts(Node& node, Rewriter& rewriter) {
  Value *x = repeated(node), *wide = node.output(0);
  if (x == nullptr || x->constant || !is_used(wide) || is_graph_output(wide) || x->type.dtype != wide->type.dtype)
    return false;
  if (!x->type.shape || !wide->type.shape || *x->type.shape == *wide->type.shape) return false;
  Narrowing narrowing;
  if (!narrowing.find(wide, *x->type.shape)) return false;
  const std::vector<Node*> changed = narrowing.changed(node);
  rewriter.replace(wide, x);
  for (Node* each : changed) {
    each->output(0)->type.shape.reset();
    rewriter.infer(*each);
  }
  return true;
}

}  // namespace tonnx
