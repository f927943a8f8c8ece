// tensordot.cpp - aten: layers that are applied to the rows of a matrix, and not to the tensor that it was, lose the
// way.
#include <algorithm>

#include "passes/aten/match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// The value with its leading dimensions as one: the value.
Value* without_flatten(const Value* matrix) {
  const Node* node = matrix ? matrix->producer : nullptr;
  if (!is_aten(node, "flatten", "using_ints") && !is_aten(node, "reshape")) return nullptr;
  Value* x = operand(*node, "self");
  const auto& to = matrix->type.shape;
  if (x == nullptr || !x->type.shape || x->type.shape->size() < 3 || !to || to->size() != 2) return nullptr;
  const Dim& last = x->type.shape->back();
  return last.is_constant() && !last.is(0) && last == to->back() ? x : nullptr;
}

/// What a node multiplies with a weight; null for other nodes.
Value* input_of_layer(const Node& node) {
  if (is_aten(node, "linear")) return operand(node, "input");
  const Value* weight = is_aten(node, "matmul") ? operand(node, "other") : nullptr;
  return weight && weight->constant && weight->constant->dims.size() == 2 ? operand(node, "self") : nullptr;
}

/// 1. reshape(layer(flatten(x)), sizes): reshape(layer(x), sizes), and layer(x) where those are its sizes
void replace(Graph& graph, Node& node) {
  Value* matrix = input_of_layer(node);
  Value* x = without_flatten(matrix);
  Value* product = node.output(0);
  if (x == nullptr || node.input(0) != matrix || product->uses.empty() || product->type.rank() != 2) return;
  const bool is_reshaped = std::all_of(product->uses.begin(), product->uses.end(), [&](const Use& use) {
    return use.user && use.user->graph == &graph && is_aten(use.user, "reshape") && use.index == 0;
  });
  if (!is_reshaped) return;
  Shape shape = *x->type.shape;
  shape.back() = product->type.shape->back();
  node.set_input(0, x);
  product->type.shape = shape;
  const std::vector<Use> uses = product->uses;
  for (const Use& use : uses) {
    Value* result = use.user->output(0);
    if (!result->type.shape || !(*result->type.shape == shape)) continue;
    graph.replace_uses(result, product);
    graph.erase(use.user);
  }
}

}  // namespace

void cancel_flattening(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) cancel_flattening(*subgraph);
    replace(graph, *node);
  }
}

}  // namespace tonnx
