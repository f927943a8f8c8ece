// clone.h - copies of nodes and graphs inside one model, and of whole models.
#pragma once
#include <functional>
#include <unordered_map>

#include "ir/model.h"

namespace tonnx {

/// What stands for each value of the original; a value that is not in it stands for itself.
using ValueMap = std::unordered_map<const Value*, Value*>;
/// Changes the copy of an attribute, or says that it is to be left out.
using AttributeEdit = std::function<bool(Attribute&)>;

inline Value* copy_of(Value* value, const ValueMap& map) {
  const auto at = map.find(value);
  return at != map.end() ? at->second : value;
}

/// Copies a node, with the graphs inside it, to the end of a graph or in front of `before`, and adds what it makes to
/// the map.
Node* clone_node(const Node& node, Graph& to, Node* before, ValueMap& map, const AttributeEdit& edit = {},
                 std::string_view prefix = {});
/// Copies all nodes and initializers of a graph into another, in front of `before` or at the end, and adds what they
/// make to the map. Names of values are made unique; `prefix` goes in front of the names of nodes.
void clone_nodes(const Graph& from, Graph& to, Node* before, ValueMap& map, const AttributeEdit& edit = {},
                 std::string_view prefix = {});
/// A copy that belongs to another node.
GraphPtr clone_graph(const Graph& from, Node& owner, ValueMap map, const AttributeEdit& edit = {},
                     std::string_view prefix = {});

/// The same model a second time, with all names, declarations and notes; a change of one leaves the other. Tensors and
/// the bytes of the file are shared.
Model clone(const Model& model);

}  // namespace tonnx
