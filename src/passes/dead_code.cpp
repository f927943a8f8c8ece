// dead_code.cpp - removes what nobody uses.
#include <algorithm>

#include "passes/passes.h"

namespace tonnx {

namespace {

bool is_used(const Value* value) { return value != nullptr && !value->uses.empty(); }

/// A branch or a loop of ONNX need not compute what nobody looks at: it gives something else in its place that it has
/// anyway.
void release_outputs(Node& node) {
  const bool is_if = node.op == Symbol("If"), is_loop = node.op == Symbol("Loop");
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

void remove_dead_code(Graph& graph) {
  // 1. From the last node to the first, so that one walk is enough.
  for (Node* node = graph.last(); node != nullptr;) {
    Node* previous = node->previous;
    if (std::none_of(node->outputs().begin(), node->outputs().end(), is_used)) {
      graph.erase(node);
    } else {
      release_outputs(*node);
      for (const GraphPtr& subgraph : subgraphs_of(*node)) remove_dead_code(*subgraph);
    }
    node = previous;
  }
  // 2. Constants.
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers) {
    const bool is_input = std::find(graph.inputs().begin(), graph.inputs().end(), value) != graph.inputs().end();
    if (value->uses.empty() && !is_input) graph.remove_initializer(value);
  }
}

}  // namespace tonnx
