// share_equal.cpp - aten: what is computed of the same by the same is computed once.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ops/frame/op_def.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/node_key.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// False for what is not to be compared: tensors, graphs.
bool append_value(std::string& key, const AttrValue& value, const Node& node) {
  if (append_plain(key, value)) return true;
  if (const auto* flag = value.get<bool>()) {
    append_bytes(key, *flag);
  } else if (const auto* dtype = value.get<DType>()) {
    append_bytes(key, *dtype);
  } else if (const auto* at = value.get<Operand>()) {
    append_bytes(key, node.input(at->index));
  } else if (const auto* list = value.get<AttrList>()) {
    append_bytes(key, list->size());
    return std::all_of(list->begin(), list->end(),
                       [&](const AttrValue& each) { return append_value(key, each, node); });
  } else {
    return value.is_none();
  }
  return true;
}

/// Whether the operator gives the same each time, and more than a part of a tensor that code may as well take twice.
bool is_worth_sharing(const Node& node) {
  constexpr std::array<std::string_view, 8> kFactories{"arange", "zeros", "ones", "full", "eye", "cat", "tril", "triu"};
  if (node.outputs().size() != 1 || node.output(0) == nullptr) return false;
  if (node.domain == "torch") return node.op == "sym_max" || node.op == "sym_min";
  if (!node.output(0)->type.is_tensor()) return false;
  if (node.domain == "tonnx") return node.op == "int_tensor" || node.op == "int_scalar";
  const AtenOpEntry* entry = node.domain == "aten" ? find_aten_op(node) : nullptr;
  if (entry == nullptr || entry->op->subscript || entry->op->view == ViewRule::Dropout) return false;
  const auto& inputs = entry->signature.inputs;
  const bool is_random =
      node.op.view().find("rand") != std::string_view::npos ||
      std::any_of(inputs.begin(), inputs.end(), [](const Param& param) { return param.type == "Generator"; });
  if (is_random) return false;
  return entry->op->elementwise != Elementwise::No || entry->op->view != ViewRule::None ||
         std::find(kFactories.begin(), kFactories.end(), node.op.view()) != kFactories.end();
}

/// The module that a node belongs to, as its name says: what blocks that repeat compute for themselves stays theirs.
std::string_view scope_of(const Node& node) {
  const std::string_view name = node.name;
  const size_t end = name.find_last_of("/.");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

/// What masks of attention are made of: exporters write it in each layer, and it is one for all of them.
std::unordered_set<const Node*> nodes_of_masks(const Graph& graph) {
  std::unordered_set<const Node*> result;
  for (const Node* node = graph.last(); node != nullptr; node = node->previous) {
    const bool is_attention = is_aten(node, "scaled_dot_product_attention");
    if (!is_attention && !result.contains(node)) continue;
    const Value* mask = is_attention ? operand(*node, "attn_mask") : nullptr;
    for (const Value* input : node->inputs()) {
      const Node* producer = input ? input->producer : nullptr;
      if (producer && producer->graph == &graph && (!is_attention || input == mask)) result.insert(producer);
    }
  }
  return result;
}

std::string key_of(const Node& node, std::string_view scope) {
  std::string key(scope);
  append_bytes(key, node.op.view().data());  // names are kept once, so that this tells them apart
  append_bytes(key, node.overload.view().data());
  for (const Attribute& attribute : node.attributes) {
    append_list(key, attribute.name);
    if (!append_value(key, attribute.value, node)) return "";
  }
  return key;
}

}  // namespace

void share_equal_aten(Graph& graph) {
  const std::unordered_set<const Node*> masks = nodes_of_masks(graph);
  std::unordered_map<std::string, Value*> first;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) share_equal_aten(*subgraph);
    const std::string key =
        is_worth_sharing(*node) ? key_of(*node, masks.contains(node) ? std::string_view() : scope_of(*node)) : "";
    if (!key.empty()) {
      const auto [at, is_fresh] = first.try_emplace(key, node->output(0));
      const auto is_output = [](const Use& use) { return use.user == nullptr; };
      const auto& uses = node->output(0)->uses;
      if (!is_fresh && std::none_of(uses.begin(), uses.end(), is_output)) {
        graph.replace_uses(node->output(0), at->second);
        graph.erase(node);
      }
    }
    node = next;
  }
}

}  // namespace tonnx
