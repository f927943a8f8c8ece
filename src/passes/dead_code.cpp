// dead_code.cpp - removes what nobody uses.
#include <algorithm>
#include <unordered_set>

#include "passes/pass_table.h"
#include "passes/passes.h"

namespace tonnx {

namespace {

/// A branch or a loop of ONNX need not compute what nobody looks at: it gives something else in its place that it has
/// anyway.
void release_outputs(Node& node) {
  const bool is_if = node.op == "If", is_loop = node.op == "Loop";
  if (!node.domain.empty() || !(is_if || is_loop)) return;
  const auto& outputs = node.outputs();
  const auto first = std::find_if(outputs.begin(), outputs.end(), is_used);
  const auto instead = is_if ? static_cast<size_t>(first - outputs.begin()) : 0;
  for (const GraphPtr& graph : subgraphs_of(node)) {
    const size_t offset = is_if ? 0 : 1, carried = is_if ? 0 : graph->inputs().size() - 2;
    for (size_t i = carried; i + offset < graph->outputs().size() && i < outputs.size(); ++i) {
      if (!is_used(outputs[i])) graph->set_output(i + offset, graph->outputs()[instead]);
    }
  }
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
      release_outputs(*node);
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
