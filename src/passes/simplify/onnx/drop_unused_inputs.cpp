// drop_unused_inputs.cpp - inputs of the model that nobody uses go away.
#include "passes/pass_table.h"

namespace tonnx {

bool drop_unused_inputs(Graph& graph, Rewriter& rewriter) {
  if (!rewriter.is_main(graph) || graph.inputs().size() < 2) return false;
  bool is_changed = false;
  // 1. All that nothing is made of; at least one stays.
  for (size_t i = graph.inputs().size(); i-- > 0 && graph.inputs().size() > 1;) {
    if (!graph.inputs()[i]->uses.empty()) continue;
    graph.remove_input(i);
    is_changed = true;
  }
  return is_changed;
}

}  // namespace tonnx
