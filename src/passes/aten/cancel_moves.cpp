// cancel_moves.cpp - aten: removes pairs of nodes that undo each other.
#include "passes/aten/match.h"
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
  // 3. t(t(x))
  return is_aten(&node, "t") && is_aten(before, "t") ? before->input(0) : nullptr;
}

}  // namespace

void cancel_moves(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) cancel_moves(*subgraph);
    if (node->outputs().size() != 1) continue;
    if (Value* same = undone(*node)) graph.replace_uses(node->output(0), same);
  }
}

}  // namespace tonnx
