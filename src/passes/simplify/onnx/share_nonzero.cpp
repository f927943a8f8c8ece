// share_nonzero.cpp - ONNX: one NonZero for each mask, so that what is picked by the mask is known to be of one size.
#include <algorithm>
#include <unordered_map>

#include "passes/passes.h"

namespace tonnx {
namespace {

bool is_output(const Value& value) {
  return std::any_of(value.uses.begin(), value.uses.end(), [](const Use& use) { return use.user == nullptr; });
}

}  // namespace

void share_nonzero(Graph& graph) {
  std::unordered_map<const Value*, Value*> places;  // by mask
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) share_nonzero(*subgraph);
    const bool finds = node->domain.empty() && node->op == "NonZero" && node->inputs().size() == 1 && node->input(0) &&
                       node->outputs().size() == 1 && node->output(0);
    if (finds) {
      const auto [at, is_first] = places.emplace(node->input(0), node->output(0));
      if (!is_first && !is_output(*node->output(0))) {
        graph.replace_uses(node->output(0), at->second);
        graph.erase(node);
      }
    }
    node = next;
  }
}

}  // namespace tonnx
