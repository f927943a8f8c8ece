// part_weights.cpp - onnx: weights of which a file holds one for all that are equal.
#include <algorithm>

#include "ops/frame/python_names.h"
#include "passes/frame/op_symbols.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// A copy of a weight for a module that has one under that name.
bool is_copy(const Graph& graph, const Node& node) {
  if (!is_onnx(node, kIdentity) || node.inputs().size() != 1 || node.outputs().size() != 1) return false;
  const Value *weight = node.input(0), *own = node.output(0);
  const bool is_weight = weight && weight->producer == nullptr && weight->constant && !weight->sparse &&
                         std::find(graph.inputs().begin(), graph.inputs().end(), weight) == graph.inputs().end();
  return is_weight && own && python::is_state_key(weight->name) && python::is_state_key(own->name) &&
         std::all_of(own->uses.begin(), own->uses.end(), [](const Use& use) { return use.user != nullptr; });
}

}  // namespace

void part_weights(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    if (is_copy(graph, *node)) {
      Value* output = node->output(0);
      Value* own = graph.add_initializer(output->name, node->input(0)->constant);
      std::swap(own->name, output->name);
      graph.replace_uses(output, own);
      graph.erase(node);
    }
    node = next;
  }
}

}  // namespace tonnx
