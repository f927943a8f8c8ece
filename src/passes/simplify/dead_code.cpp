// dead_code.cpp - removes what nobody uses.
#include <algorithm>
#include <unordered_set>

#include "passes/pass_table.h"
#include "passes/passes.h"

namespace tonnx {

namespace {

/// The outputs behind number i move up by one; nobody uses it.
void remove_output(Node& node, size_t i) {
  const size_t count = node.outputs().size();
  if (node.output(i) != nullptr) node.graph->move_output(node.output(i), &node, count);
  for (size_t next = i + 1; next < count; ++next) {
    if (node.output(next) != nullptr) node.graph->move_output(node.output(next), &node, next - 1);
  }
  node.resize_outputs(count - 1);
}

/// A branch or a loop of ONNX need not compute what nobody looks at; what a loop carries stays, for its body takes it.
bool release_outputs(Node& node) {
  const bool is_if = node.op == "If", is_loop = node.op == "Loop";
  if (!node.domain.empty() || !(is_if || is_loop)) return false;
  const std::vector<GraphPtr> graphs = subgraphs_of(node);
  const size_t offset = is_if ? 0 : 1, carried = is_if || graphs.empty() ? 0 : graphs[0]->inputs().size() - 2;
  bool is_changed = false;
  for (size_t i = node.outputs().size(); i-- > carried;) {
    const bool is_given = std::all_of(graphs.begin(), graphs.end(),
                                      [&](const GraphPtr& graph) { return i + offset < graph->outputs().size(); });
    if (is_used(node.output(i)) || !is_given || node.outputs().size() == 1) continue;
    for (const GraphPtr& graph : graphs) graph->remove_output(i + offset);
    remove_output(node, i);
    is_changed = true;
  }
  return is_changed;
}

}  // namespace

bool remove_dead_code(Graph& graph) {
  bool is_changed = false;
  // 1. From the last node to the first, so that one walk is enough.
  for (Node* node = graph.last(); node != nullptr;) {
    Node* previous = node->previous;
    if (std::none_of(node->outputs().begin(), node->outputs().end(), is_used)) {
      graph.erase(node);
      is_changed = true;
    } else {
      is_changed |= release_outputs(*node);
      for (const GraphPtr& subgraph : subgraphs_of(*node)) is_changed |= remove_dead_code(*subgraph);
    }
    node = previous;
  }
  // 2. Constants.
  const std::unordered_set<const Value*> inputs(graph.inputs().begin(), graph.inputs().end());
  const size_t initializers = graph.initializers().size();
  graph.remove_initializers([&](const Value& value) { return value.uses.empty() && !inputs.contains(&value); });
  return is_changed || graph.initializers().size() < initializers;
}

bool eliminate_dead_code(Graph& graph, Rewriter&) { return remove_dead_code(graph); }

}  // namespace tonnx
