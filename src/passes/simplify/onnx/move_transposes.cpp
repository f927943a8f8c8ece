// move_transposes.cpp - Transposes are moved through other nodes to where they meet others, or are no longer needed.
#include <algorithm>
#include <unordered_map>

#include "ir/origins.h"
#include "passes/pass_table.h"
#include "passes/simplify/onnx/transposes.h"

namespace tonnx {
namespace {

constexpr size_t kMostInputs = 128;  // of all nodes that one move goes through

/// What brings the output of a node into another order, found out before anything is changed: the nodes on the way up
/// that take the order of their inputs instead, and how many Transposes there are more in the end.
class Move {
 public:
  explicit Move(Rewriter& rewriter) : rewriter_(rewriter) {}

  /// More Transposes than before where a value that one node uses is wanted in another order.
  int cost(const Value* value, const Perm& perm);
  /// The same where the node that gives the value is to be replaced, for all that use it; nothing where it cannot.
  std::optional<int> cost_of_node(const Node& node, const Perm& perm);
  /// How many Transposes among those on the way are no longer needed here.
  int ended() const { return ended_; }

  /// The value in the other order; new nodes come in front of `before`.
  Value* make(Value* value, const Perm& perm, Node& before);
  Value* make_node(Node& node, Node& before);

 private:
  Rewriter& rewriter_;
  std::unordered_map<const Value*, Reordered> through_;
  size_t inputs_ = 0;
  int ended_ = 0;
};

constexpr int kNever = 100;  // more Transposes than could go away

int Move::cost(const Value* value, const Perm& perm) {
  if (is_identity(perm)) return 0;
  if (can_reorder(*value)) return rewriter_.keeps_weight(*value) ? kNever : 0;
  const bool is_alone = only_user(value) != nullptr;
  const Node* node = value->producer;
  if (node == nullptr || node->graph != value->graph) return 1;
  if (const auto order = perm_of(*node); order && order->size() == perm.size()) {
    const bool is_end = is_identity(combined(*order, perm));
    ended_ += is_end ? 1 : 0;
    return is_end ? (is_alone ? -1 : 0) : (is_alone ? 0 : 1);
  }
  if (!is_alone) return 1;
  const int ended = ended_;
  const auto through = cost_of_node(*node, perm);
  if (through && *through <= 1) return *through;
  through_.erase(value);
  ended_ = ended;
  return 1;
}

std::optional<int> Move::cost_of_node(const Node& node, const Perm& perm) {
  inputs_ += node.inputs().size();
  if (inputs_ > kMostInputs) return std::nullopt;
  auto reordered = reorder(node, perm);
  if (!reordered) return std::nullopt;
  int sum = 0;
  for (const Reordered::Input& input : reordered->inputs) {
    if (!input.perm.empty()) sum += cost(input.value, input.perm);
  }
  through_.insert_or_assign(node.output(0), std::move(*reordered));
  return sum;
}

Value* Move::make(Value* value, const Perm& perm, Node& before) {
  if (is_identity(perm)) return value;
  if (can_reorder(*value)) {
    const TensorPtr turned = in_order(*value->constant, perm);
    note_move(turned, value->constant, [perm](const Tensor& of) { return in_order(of, perm); });
    return rewriter_.constant(*before.graph, turned, value->name);
  }
  Node* node = value->producer;
  if (node != nullptr && through_.contains(value)) return make_node(*node, before);
  Perm whole = perm;
  if (const auto order = node && node->graph == value->graph ? perm_of(*node) : std::nullopt;
      order && order->size() == perm.size()) {
    whole = combined(*order, perm);
    value = node->input(0);
    if (is_identity(whole)) return value;
  }
  return rewriter_.add(before, {"Transpose", {value}, {{"perm", whole, AttrType::Ints, {}, {}}}}, value->name);
}

Value* Move::make_node(Node& node, Node& before) {
  Reordered& reordered = through_.at(node.output(0));
  std::vector<Value*> inputs;
  for (const Reordered::Input& input : reordered.inputs) {
    Value* made = input.value;
    if (!input.perm.empty()) made = make(input.value, input.perm, before);
    if (input.value != nullptr && made == nullptr) return nullptr;
    inputs.push_back(made);
  }
  for (std::vector<int64_t>& list : reordered.lists) {
    inputs.push_back(rewriter_.ints(*before.graph, std::move(list), "axes"));
  }
  if (!reordered.is_copy)
    return rewriter_.add(before, {node.op.view(), std::move(inputs), reordered.attributes}, node.output(0)->name);
  Graph& graph = *before.graph;
  Node* made = graph.add_node(node.domain, node.op, &before);
  made->version = node.version;
  made->name = node.name;
  made->metadata = node.metadata;
  made->attributes = reordered.attributes;
  for (size_t i = 0; i < inputs.size(); ++i) made->set_input(i, inputs[i]);
  Value* output = graph.add_output_to(made, graph.unique_name(node.output(0)->name));
  rewriter_.infer(*made);
  return output;
}

/// 1. A Transpose moves up through nodes that can do without, where others end it, or take it in, on every way but few.
bool pull_up(Node& node, Rewriter& rewriter) {
  const auto perm = perm_of(node);
  Value* x = node.input(0);
  if (!perm || is_identity(*perm) || x->producer == nullptr || x->graph != node.graph || perm_of(*x->producer))
    return false;
  Node& top = *x->producer;
  Move move(rewriter);
  const auto cost = move.cost_of_node(top, *perm);
  const bool is_alone = only_user(x) != nullptr;
  if (!cost || *cost - (is_alone ? 1 : 0) >= 0) return false;
  Value* made = move.make_node(top, top);
  if (made == nullptr) return false;
  if (!is_alone) {  // what else uses the value gets it in the old order
    Value* old =
        rewriter.add(top, {"Transpose", {made}, {{"perm", inverse_of(*perm), AttrType::Ints, {}, {}}}}, x->name);
    if (old == nullptr) return false;
    rewriter.set_input(node, 0, old);
    rewriter.replace(x, old);
  }
  rewriter.replace(node.output(0), made);
  return true;
}

/// 2. A node with several inputs that are brought into the same order does without, and its output is.
bool sink(Node& node, Rewriter& rewriter) {
  if (node.inputs().size() < 2 || node.outputs().size() != 1 || node.output(0) == nullptr ||
      !node.output(0)->type.shape)
    return false;
  const size_t rank = node.output(0)->type.shape->size();
  for (const Value* input : node.inputs()) {
    const auto perm = input && input->producer && input->graph == node.graph ? perm_of(*input->producer) : std::nullopt;
    if (!perm || perm->size() != rank || is_identity(*perm)) continue;
    Move move(rewriter);
    const auto cost = move.cost_of_node(node, inverse_of(*perm));
    if (!cost || *cost >= 0 || move.ended() < 2) return false;
    Value* y = node.output(0);
    Value* made = move.make_node(node, node);
    Value* result =
        made ? rewriter.add(node, {"Transpose", {made}, {{"perm", *perm, AttrType::Ints, {}, {}}}}, y->name) : nullptr;
    return result != nullptr && rewriter.replace(y, result);
  }
  return false;
}

/// 3. A node that removes axes, and leaves the others in their old order, needs no other order before.
bool skip_before_removal(Node& node, Rewriter& rewriter) {
  const Node* before = node.input(0) ? node.input(0)->producer : nullptr;
  const auto perm = before && before->graph == node.graph && only_user(node.input(0)) ? perm_of(*before) : std::nullopt;
  if (!perm) return false;
  const auto form = without_transpose(node, *perm);
  if (!form) return false;
  std::vector<Value*> inputs;
  for (const Reordered::Input& input : form->inputs) inputs.push_back(input.value);
  inputs[0] = before->input(0);
  for (const std::vector<int64_t>& list : form->lists) inputs.push_back(rewriter.ints(*node.graph, list, "axes"));
  Value* y = node.output(0);
  Value* made = rewriter.add(node, {node.op.view(), std::move(inputs), form->attributes}, y->name);
  return made != nullptr && rewriter.replace(y, made);
}

}  // namespace

bool move_transposes(Node& node, Rewriter& rewriter) {
  if (!node.domain.empty() || node.output(0) == nullptr || node.output(0)->uses.empty()) return false;
  return pull_up(node, rewriter) || skip_before_removal(node, rewriter) || sink(node, rewriter);
}

}  // namespace tonnx
