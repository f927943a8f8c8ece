// share_nodes.cpp - nodes that compute the same of the same are one.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/simplify_passes.h"

namespace tonnx {
namespace {

bool is_random(const Node& node) {
  constexpr std::string_view kRandom[] = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                                          "Multinomial",  "Bernoulli",        "Dropout"};
  return std::find(std::begin(kRandom), std::end(kRandom), node.op.view()) != std::end(kRandom);
}

/// False where the value is too large to be compared, or a graph.
bool append_value(std::string& key, const AttrValue& value) {
  if (const auto* i = value.get<int64_t>()) {
    key += fmt::format("i{}", *i);
  } else if (const auto* f = value.get<double>()) {
    key += fmt::format("f{:a}", *f);
  } else if (const auto* s = value.get<std::string>()) {
    key += fmt::format("s{}:{}", s->size(), *s);
  } else if (const auto* ints = value.get<std::vector<int64_t>>()) {
    key += fmt::format("I{}", fmt::join(*ints, ","));
  } else if (const auto* floats = value.get<std::vector<double>>()) {
    for (const double each : *floats) key += fmt::format("F{:a}", each);
  } else if (const auto* tensor = value.get<TensorPtr>()) {
    key += fmt::format("t{}", static_cast<const void*>(tensor->get()));
  } else {
    return false;
  }
  return true;
}

/// What tells a node from others: empty where it is not to be shared.
std::string key_of(const Node& node) {
  if (!node.domain.empty() || node.outputs().empty() || is_random(node)) return "";
  std::string key = fmt::format("{} {} {}", node.op.view(), node.version, node.outputs().size());
  for (const Value* input : node.inputs()) key += fmt::format(" {}", static_cast<const void*>(input));
  std::vector<const Attribute*> attributes;
  for (const Attribute& attribute : node.attributes) attributes.push_back(&attribute);
  std::sort(attributes.begin(), attributes.end(),
            [](const Attribute* a, const Attribute* b) { return a->name < b->name; });
  for (const Attribute* attribute : attributes) {
    key += " " + attribute->name + "=";
    if (!attribute->reference.empty() || !append_value(key, attribute->value)) return "";
  }
  return key;
}

struct Scope {
  const Scope* around = nullptr;
  std::unordered_map<std::string, Node*> nodes;

  Node* find(const std::string& key) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around) {
      if (const auto at = scope->nodes.find(key); at != scope->nodes.end()) return at->second;
    }
    return nullptr;
  }
};

/// 1. A node with the operator, the inputs and the attributes of an earlier one, in its graph or one around it, goes
///    away; what gives an output of a graph stays, for it has a name to keep.
bool share(Graph& graph, const Scope* around) {
  Scope scope{around, {}};
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) is_changed |= share(*subgraph, &scope);
    const std::string key = key_of(*node);
    const bool has_output = std::any_of(node->outputs().begin(), node->outputs().end(),
                                        [](const Value* value) { return value != nullptr && is_graph_output(value); });
    Node* same = key.empty() ? nullptr : scope.find(key);
    if (same == nullptr) {
      if (!key.empty()) scope.nodes.emplace(key, node);
    } else if (!has_output) {
      bool is_done = true;
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        Value* output = node->output(i);
        if (output == nullptr || output->uses.empty()) continue;
        if (same->output(i) == nullptr) {
          is_done = false;
        } else {
          graph.replace_uses(output, same->output(i));
          is_changed = true;
        }
      }
      if (is_done) graph.erase(node);
    }
    node = next;
  }
  return is_changed;
}

}  // namespace

bool share_nodes(Graph& graph) { return share(graph, nullptr); }

bool share_equal_nodes(Graph& graph, Rewriter&) { return share_nodes(graph); }

}  // namespace tonnx
