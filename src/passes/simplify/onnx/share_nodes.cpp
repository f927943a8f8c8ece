// share_nodes.cpp - nodes that compute the same of the same are one.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "ir/dim_map.h"
#include "ops/frame/infer.h"
#include "passes/frame/node_key.h"
#include "passes/pass_table.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// False where the value is too large to be compared, or a graph.
bool append_value(std::string& key, const AttrValue& value) {
  if (append_plain(key, value)) return true;
  const auto* tensor = value.get<TensorPtr>();
  if (tensor != nullptr) append_bytes(key, tensor->get());
  return tensor != nullptr;
}

/// Writes what tells a node from others, in no form to be read: nothing where it is not to be shared.
void write_key(const Node& node, std::string& key) {
  key.clear();
  if (!node.domain.empty() || node.outputs().empty() || has_trait(node, kRandom)) return;
  append_bytes(key, node.op.view().data());  // names are kept once, so that this tells them apart
  append_bytes(key, node.version);
  append_bytes(key, node.outputs().size());
  append_list(key, node.inputs());
  std::vector<const Attribute*> attributes;
  for (const Attribute& attribute : node.attributes) attributes.push_back(&attribute);
  std::sort(attributes.begin(), attributes.end(),
            [](const Attribute* a, const Attribute* b) { return a->name < b->name; });
  for (const Attribute* attribute : attributes) {
    append_list(key, attribute->name);
    if (!attribute->reference.empty() || !append_value(key, attribute->value)) return key.clear();
  }
}

/// Sizes that inference named once for each of two equal nodes are equal.
void note_sizes(const Type& gone, const Type& kept, DimMap& map) {
  if (!gone.shape || !kept.shape || gone.shape->size() != kept.shape->size()) return;
  for (size_t i = 0; i < gone.shape->size(); ++i) {
    const Dim &a = (*gone.shape)[i], &b = (*kept.shape)[i];
    const auto name = a.is_constant() ? std::nullopt : a.symbol_name();
    if (!(a == b) && name && FreshDims::is_made(*name)) map.insert_or_assign(std::string(*name), substituted(b, map));
  }
}

void rename_sizes(Graph& graph, const DimMap& map) {
  const auto rename = [&](Value* value) {
    if (value == nullptr) return;
    value->type = substituted(std::move(value->type), map);
    if (!value->known_ints) return;
    for (Dim& dim : *value->known_ints) dim = substituted(dim, map);
  };
  for (Value* input : graph.inputs()) rename(input);
  for (Node& node : graph) {
    for (Value* output : node.outputs()) rename(output);
    for (const GraphPtr& subgraph : subgraphs_of(node)) rename_sizes(*subgraph, map);
  }
}

/// The nodes of a graph and those around it. Of their keys it has only a number of each: most nodes are like no other,
/// and there may be millions.
class NodeScope {
 public:
  explicit NodeScope(const NodeScope* around) : around_(around) {}

  /// The innermost node with that key, if there is one; otherwise this one is it from now on.
  Node* find_or_add(const std::string& key, Node* node) {
    const size_t number = std::hash<std::string>()(key);
    for (const NodeScope* scope = this; scope != nullptr; scope = scope->around_) {
      const auto at = scope->nodes_.find(number);
      if (at == scope->nodes_.end()) continue;
      write_key(*at->second, other_);
      if (other_ == key) return at->second;
    }
    nodes_.try_emplace(number, node);
    return nullptr;
  }

 private:
  const NodeScope* around_;
  std::unordered_map<size_t, Node*> nodes_;
  std::string other_;
};

/// 1. A node with the operator, the inputs and the attributes of an earlier one, in its graph or one around it, goes
///    away; what gives an output of a graph stays, for it has a name to keep, unless there is a rewriter to hand it on.
bool share_nodes(Graph& graph, const NodeScope* around, Rewriter* rewriter, DimMap& sizes) {
  NodeScope scope(around);
  std::string key;
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) is_changed |= share_nodes(*subgraph, &scope, rewriter, sizes);
    write_key(*node, key);
    const bool has_output = std::any_of(node->outputs().begin(), node->outputs().end(),
                                        [](const Value* value) { return value != nullptr && is_graph_output(value); });
    Node* same = key.empty() ? nullptr : scope.find_or_add(key, node);
    if (same == nullptr) {
      // it is the first, or like no other
    } else if (!has_output) {
      bool is_done = true;
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        Value* output = node->output(i);
        if (output == nullptr || output->uses.empty()) continue;
        if (same->output(i) == nullptr) {
          is_done = false;
        } else {
          note_sizes(output->type, same->output(i)->type, sizes);
          graph.replace_uses(output, same->output(i));
          is_changed = true;
        }
      }
      if (is_done) graph.erase(node);
    } else if (rewriter != nullptr) {
      for (size_t i = 0; i < node->outputs().size() && node->graph != nullptr; ++i) {
        Value* output = node->output(i);
        if (output != nullptr && !output->uses.empty() && same->output(i) != nullptr)
          is_changed |= rewriter->replace(output, same->output(i));
      }
    }
    node = next;
  }
  return is_changed;
}

bool share_all_nodes(Graph& graph, Rewriter* rewriter) {
  DimMap sizes;
  const bool is_changed = share_nodes(graph, nullptr, rewriter, sizes);
  if (!sizes.empty()) rename_sizes(graph, sizes);
  return is_changed;
}

}  // namespace

bool share_nodes(Graph& graph) { return share_all_nodes(graph, nullptr); }

bool share_equal_nodes(Graph& graph, Rewriter& rewriter) { return share_all_nodes(graph, &rewriter); }

}  // namespace tonnx
