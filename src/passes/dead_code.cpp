// dead_code.cpp - removes what nobody uses.
#include <algorithm>

#include "passes/passes.h"

namespace tonnx {

void remove_dead_code(Graph& graph) {
  // 1. From the last node to the first, so that one walk is enough.
  for (Node* node = graph.last(); node != nullptr;) {
    Node* previous = node->previous;
    const bool used = std::any_of(node->outputs().begin(), node->outputs().end(),
                                  [](const Value* output) { return output && !output->uses.empty(); });
    if (!used) {
      graph.erase(node);
    } else {
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
