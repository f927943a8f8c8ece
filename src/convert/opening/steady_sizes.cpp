// steady_sizes.cpp - the open sizes inside a model that follow from the sizes of its inputs, whatever their elements
// are.
#include "convert/opening/steady_sizes.h"

#include <algorithm>

#include "ops/frame/node_facts.h"

namespace tonnx {

SteadySizes::SteadySizes(const Graph& graph, const FixedTypes& types) : types_(types) {
  for (const Value* input : graph.inputs()) {
    data_.insert(input);
    if (!input->type.shape) continue;
    for (const Dim& size : *input->type.shape) {
      if (const auto name = size.symbol_name()) names_.insert(*name);
    }
  }
  for (const Node& node : graph) note(node);
}

bool SteadySizes::contains(const Dim& size) const {
  for (const auto& [product, coefficient] : size.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      if (atom->kind != 's' ? !contains(atom->a) || !contains(atom->b) : !names_.contains(atom->text)) return false;
    }
  }
  return true;
}

void SteadySizes::note(const Node& node) {
  const auto is_data = [&](const Value* value) { return data_.contains(value); };
  const auto is_steady = [&](const Value* value) {
    const Type* type = types_.find(value);
    return type != nullptr && type->shape &&
           std::all_of(type->shape->begin(), type->shape->end(), [&](const Dim& size) { return contains(size); });
  };
  const std::vector<Value*>& inputs = node.inputs();
  const bool has_body = !subgraphs_of(node).empty();
  const bool asks_size = node.op == "Shape" || node.op == "Size";
  bool depends = has_body || std::any_of(inputs.begin(), inputs.end(), is_data);
  if (asks_size) depends = !is_steady(node.input(0));
  // the sizes of what only moves elements are said by its further inputs
  const bool only_moves =
      has_trait(node, kMoves) && !inputs.empty() && std::none_of(inputs.begin() + 1, inputs.end(), is_data);
  const bool sizes_follow = !has_body && (asks_size || only_moves || has_trait(node, kElementwise)) &&
                            std::all_of(inputs.begin(), inputs.end(), [&](const Value* value) {
                              return value == nullptr || value->constant || is_steady(value);
                            });
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    if (depends) data_.insert(output);
    const Type* type = types_.find(output);
    if (!sizes_follow || type == nullptr || !type->shape) continue;
    for (const Dim& size : *type->shape) {
      if (const auto name = size.symbol_name()) names_.insert(*name);
    }
  }
}

}  // namespace tonnx
