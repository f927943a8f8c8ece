// cancel_moves.cpp - aten: removes pairs of nodes that undo each other.
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// A number among the arguments; -1 for what is none, or counts from the back.
int64_t int_argument(const Node& node, std::string_view argument) {
  const Attribute* found = node.find_attribute(argument);
  const auto* i = found ? found->value.get<int64_t>() : nullptr;
  if (const auto* list = found ? found->value.get<std::vector<int64_t>>() : nullptr; list && list->size() == 1)
    i = list->data();
  return i != nullptr && *i >= 0 ? *i : -1;
}

/// How many dimensions a tensor has. The results of recurrent layers have as many as what goes in, and no type where
/// they are parts of an operator of ONNX.
std::optional<int64_t> rank_of(const Value& value) {
  if (const auto rank = value.type.rank()) return *rank;
  const Node* node = value.producer;
  const bool is_result = value.output_index == 0 && (is_aten(node, "lstm", "input") || is_aten(node, "gru", "input") ||
                                                     is_aten(node, "rnn_tanh", "input"));
  const Value* input = is_result ? operand(*node, "input") : nullptr;
  return input && input->type.rank() ? std::optional<int64_t>(*input->type.rank()) : std::nullopt;
}

/// What the node gives, where it undoes the node in front of it; null elsewhere.
Value* undone(const Node& node) {
  const Node* before = node.input(0) ? node.input(0)->producer : nullptr;
  if (before == nullptr || before->graph != node.graph) return nullptr;
  // 1. unsqueeze(x, d), and then squeeze or select of d
  if (is_aten(before, "unsqueeze")) {
    const int64_t dim = int_argument(*before, "dim");
    const bool squeezes = is_aten(&node, "squeeze", "dim") || is_aten(&node, "squeeze", "dims");
    const bool selects = is_aten(&node, "select", "int") && int_argument(node, "index") == 0;
    return dim >= 0 && (squeezes || selects) && int_argument(node, "dim") == dim ? before->input(0) : nullptr;
  }
  // 2. transpose(transpose(x, a, b), a, b)
  if (is_aten(&node, "transpose", "int") && is_aten(before, "transpose", "int")) {
    const int64_t a = int_argument(node, "dim0"), b = int_argument(node, "dim1");
    const int64_t c = int_argument(*before, "dim0"), d = int_argument(*before, "dim1");
    const bool same = a >= 0 && b >= 0 && ((a == c && b == d) || (a == d && b == c));
    return same ? before->input(0) : nullptr;
  }
  // 3. unflatten(x, d, sizes), and then flatten of these dimensions
  if (is_aten(&node, "flatten", "using_ints") && is_aten(before, "unflatten", "int")) {
    const int64_t dim = int_argument(*before, "dim"), start = int_argument(node, "start_dim");
    const Attribute* found = before->find_attribute("sizes");
    const auto* sizes = found ? found->value.get<std::vector<int64_t>>() : nullptr;
    const auto rank = rank_of(*before->input(0));
    if (dim < 0 || dim != start || sizes == nullptr || before->inputs().size() != 1) return nullptr;
    const int64_t last = dim + static_cast<int64_t>(sizes->size()) - 1, end = int_argument(node, "end_dim");
    const bool to_last = end < 0 && (!node.find_attribute("end_dim") || is_number(node, "end_dim", -1));
    const bool is_all = to_last ? rank && dim + 1 == *rank : end == last;
    return is_all ? before->input(0) : nullptr;
  }
  // 4. t(t(x))
  return is_aten(&node, "t") && is_aten(before, "t") ? before->input(0) : nullptr;
}

}  // namespace

void cancel_moves(Graph& graph) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) cancel_moves(*subgraph);
    if (node->outputs().size() != 1) continue;
    Value* same = undone(*node);
    if (same == nullptr) continue;
    if (!same->type.shape) same->type = node->output(0)->type;
    graph.replace_uses(node->output(0), same);
    is_changed = true;
  }
  if (is_changed) remove_unused_nodes(graph);
}

}  // namespace tonnx
