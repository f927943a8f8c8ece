// stack.cpp - aten: recognises tensors that get a dimension each, and are joined along it.
#include <algorithm>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// The dimension along which a node works, from the front; nothing where that is not known.
std::optional<int64_t> dim_of(const Node& node, const Value& result) {
  const int64_t* given = find_int(node, "dim");
  const int64_t dim = given ? *given : 0;
  if (node.find_attribute("dim") && !given) return std::nullopt;
  if (dim >= 0) return dim;
  const auto rank = result.type.rank();
  return rank ? std::optional(dim + static_cast<int64_t>(*rank)) : std::nullopt;
}

/// cat([unsqueeze(x, d), unsqueeze(y, d)], d): stack([x, y], d)
void stack(Graph& graph, Node& node) {
  const Attribute* tensors = is_aten(node, "cat") ? node.find_attribute("tensors") : nullptr;
  const auto* list = tensors ? tensors->value.get<AttrList>() : nullptr;
  if (list == nullptr || list->size() < 2 || list->size() != node.inputs().size()) return;
  const auto dim = dim_of(node, *node.output(0));
  const bool are_new = dim && std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
                         const Node* made = single_use_producer(input, graph);
                         return is_aten(made, "unsqueeze") && operand(*made, "self") && dim_of(*made, *input) == dim;
                       });
  if (!are_new) return;
  const std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
  node.op = "stack";
  for (size_t i = 0; i < inputs.size(); ++i) {
    Node* made = inputs[i]->producer;
    node.set_input(i, operand(*made, "self"));
    graph.erase(made);
  }
}

}  // namespace

void recognise_stack(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_stack(*subgraph);
    stack(graph, *node);
  }
}

}  // namespace tonnx
