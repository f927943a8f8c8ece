// share_concats.cpp - aten: a concatenation that begins with all of another one is made out of it.
#include <algorithm>
#include <map>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr size_t kMostParts = 100;  // of a concatenation; longer ones stay as they are

using Key = std::pair<int64_t, std::vector<const Value*>>;

/// `cat([a, b, c])` as `cat([ab, c])`.
void begin_with(Graph& graph, Node& node, Value* front, size_t count) {
  Node* made = graph.add_node("aten", "cat", &node);
  made->name = node.name;
  made->metadata = node.metadata;
  AttrList parts;
  const auto add = [&](Value* value) {
    parts.emplace_back(Operand{static_cast<uint32_t>(made->inputs().size())});
    made->add_input(value);
  };
  add(front);
  for (size_t i = count; i < node.inputs().size(); ++i) add(node.input(i));
  made->attributes.push_back({"tensors", std::move(parts), AttrType::None, {}, {}});
  if (const Attribute* dim = node.find_attribute("dim")) made->attributes.push_back(*dim);
  graph.move_output(node.output(0), made, 0);
  node.resize_outputs(0);
  graph.erase(&node);
}

}  // namespace

void share_concats(Graph& graph) {
  std::map<Key, Value*> known;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) share_concats(*subgraph);
    const int64_t* given = find_int(*node, "dim");
    const bool is_cat = is_aten(*node, "cat") && node->inputs().size() > 1 && node->inputs().size() <= kMostParts &&
                        (given || !node->find_attribute("dim"));
    if (is_cat) {
      Key key{given ? *given : 0, {node->inputs().begin(), node->inputs().end()}};
      Value* all = node->output(0);
      Key front = key;
      for (front.second.pop_back(); front.second.size() > 1; front.second.pop_back()) {
        const auto at = known.find(front);
        if (at == known.end()) continue;
        begin_with(graph, *node, at->second, front.second.size());
        break;
      }
      known.emplace(std::move(key), all);
    }
    node = next;
  }
}

}  // namespace tonnx
