// share_initializers.cpp - constants that are equal are one.
#include "base/computed.h"
#include "ir/cast_numbers.h"
#include "passes/frame/equal_tensors.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

bool share_constants(Graph& graph, const EqualTensors* around) {
  EqualTensors constants(around);
  bool is_changed = false;
  for (Value* value : graph.initializers()) {
    if (!value->constant || value->sparse || is_graph_output(value)) continue;
    if (is_computed(value->constant->data) && find_cast(*value->constant) == nullptr) continue;
    if (Value* same = constants.find_or_add(value)) {
      is_changed |= !value->uses.empty();
      graph.replace_uses(value, same);
    }
  }
  for (const Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) is_changed |= share_constants(*subgraph, &constants);
  }
  return is_changed;
}

}  // namespace

bool share_initializers(Graph& graph, Rewriter&) { return share_constants(graph, nullptr); }

}  // namespace tonnx
