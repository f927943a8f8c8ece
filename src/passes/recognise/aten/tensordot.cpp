// tensordot.cpp - aten: layers that are applied to the rows of a matrix, and not to the tensor that it was, lose the
// way.
#include <algorithm>

#include "passes/frame/aten_match.h"
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

/// The value with its leading dimensions as one, and the others as another: the value with only the latter joined,
/// where the sizes `lead` are all that is left of the former.
Value* with_last_joined(Graph& graph, Node& user, const Value* matrix, const Shape& lead) {
  const Node* node = matrix ? matrix->producer : nullptr;
  if (!is_aten(node, "reshape")) return nullptr;
  Value* x = operand(*node, "self");
  const auto& to = matrix->type.shape;
  if (x == nullptr || !x->type.shape || x->type.shape->size() < lead.size() + 2 || !to || to->size() != 2)
    return nullptr;
  const auto behind = x->type.shape->begin() + static_cast<std::ptrdiff_t>(lead.size());
  const Shape last(behind, x->type.shape->end());
  const bool is_constant = std::all_of(last.begin(), last.end(), [](const Dim& size) { return size.is_constant(); });
  if (!is_constant || !std::equal(lead.begin(), lead.end(), x->type.shape->begin()) ||
      !(count_of(last) == to->back()) || to->back().is(0))
    return nullptr;
  Node* flatten = graph.add_node("aten", "flatten", &user);
  flatten->overload = "using_ints";
  flatten->name = node->name;
  flatten->metadata = node->metadata;
  add_operand(*flatten, "self", x);
  flatten->attributes.push_back({"start_dim", static_cast<int64_t>(lead.size()), AttrType::None, {}, {}});
  Type type = matrix->type;
  type.shape = lead;
  type.shape->push_back(to->back());
  return graph.add_output_to(flatten, graph.unique_name(x->name), type);
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
  if (x == nullptr && matrix != nullptr && product->uses.size() == 1 && is_aten(product->uses[0].user, "reshape")) {
    const auto& result = product->uses[0].user->output(0)->type.shape;
    if (result && result->size() > 2 && product->type.rank() == 2 && result->back() == product->type.shape->back())
      x = with_last_joined(graph, node, matrix, Shape(result->begin(), result->end() - 1));
  }
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
