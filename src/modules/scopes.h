// scopes.h - the places of a model as a tree, and in which of them each node of its graph is computed.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "modules/module_tree.h"
#include "modules/places.h"

namespace tonnx {

/// A module of the model, with its own name; the first one is the model.
struct Scope {
  std::string name;
  int parent = -1;
  int depth = 0;
  std::vector<int> children;
  std::vector<size_t> tensors;  // of the tree of modules
  int layer = -1;               // the module of the tree that it is; -1 for one that holds others
  int external = -1;            // the module of a converter of the user's own that it is
  bool is_leaf() const { return layer >= 0 || external >= 0; }
};

class Scopes {
 public:
  explicit Scopes(const ModuleTree& tree);

  const Scope& operator[](int scope) const { return scopes_[static_cast<size_t>(scope)]; }
  int count() const { return static_cast<int>(scopes_.size()); }
  std::string path_of(int scope) const;
  bool is_within(int scope, int outer) const;
  /// Whether it holds numbered modules and nothing else, most of which are there.
  bool is_list(int scope) const;
  int common(int a, int b) const;
  /// The deepest place that the path leads to, without layers.
  int find(const Path& path) const;
  /// The layer's own place.
  int of_layer(size_t layer) const { return layers_[layer]; }
  int of_external(size_t index) const { return externals_[index]; }
  int of_tensor(size_t tensor) const { return tensors_[tensor]; }

 private:
  int add(int parent, const std::string& name);
  int child(int parent, const std::string& name) const;
  int add_path(const std::string& path, size_t without_last);

  std::vector<Scope> scopes_;
  std::vector<std::unordered_map<std::string, int>> by_name_;
  std::vector<int> layers_, externals_, tensors_;
};

/// The nodes of a graph, counted; those of the graphs inside of a node have the number of that node.
class NodeNumbers {
 public:
  explicit NodeNumbers(const Graph& graph);

  const std::vector<const Node*>& nodes() const { return nodes_; }
  size_t count() const { return nodes_.size(); }
  /// kElsewhere for a node that is not in the graph, and for none.
  int find(const Node* node) const;
  size_t get(const Node* node) const { return static_cast<size_t>(numbers_.at(node)); }

  static constexpr int kElsewhere = -1;

 private:
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, int> numbers_;
};

/// The place of each node of a graph: where its name says, where its weights are, or where its results are used.
/// What only others use, and needs nothing of the place, moves out of it. All of it is inside `root`: the model for the
/// main graph, the place of its node for a branch or the body of a loop.
std::vector<int> places_of_nodes(const Graph& graph, const NodeNumbers& numbers, const ModuleTree& tree,
                                 const Scopes& scopes, int root);

}  // namespace tonnx
