// clone.h - copies of nodes and graphs, inside one model.
#pragma once
#include <functional>
#include <unordered_map>

#include "ir/graph.h"

namespace tonnx {

/// What stands for each value of the original; a value that is not in it stands for itself.
using ValueMap = std::unordered_map<const Value*, Value*>;
/// Changes the copy of an attribute, or says that it is to be left out.
using AttributeEdit = std::function<bool(Attribute&)>;

inline Value* copy_of(Value* value, const ValueMap& map) {
  const auto at = map.find(value);
  return at != map.end() ? at->second : value;
}

/// Copies all nodes and initializers of a graph into another, in front of `before` or at the end, and adds what they
/// make to the map. Names of values are made unique; `prefix` goes in front of the names of nodes.
void clone_nodes(const Graph& from, Graph& to, Node* before, ValueMap& map, const AttributeEdit& edit = {},
                 std::string_view prefix = {});
/// A copy that belongs to another node.
GraphPtr clone_graph(const Graph& from, Node& owner, ValueMap map, const AttributeEdit& edit = {},
                     std::string_view prefix = {});

}  // namespace tonnx
