// bodies.h - the blocks of all graphs of a model: the main one, the branches, the bodies of loops.
#pragma once
#include <string_view>
#include <unordered_map>
#include <vector>

#include "modules/blocks.h"

namespace tonnx {

/// One of the graphs.
struct Body {
  std::string_view word;  // what a module does in it is called after it: `else`
  Blocks blocks;
};

class Bodies {
 public:
  Bodies(const Graph& graph, const ModuleTree& tree, const Scopes& scopes);

  /// Null for a graph in which nothing is a block.
  const Body* find(const Graph& graph) const;
  /// Whether a place is a block in any of them.
  bool is_block(int scope) const { return is_block_[static_cast<size_t>(scope)]; }
  bool has_blocks() const;

 private:
  void add(const Graph& graph, std::string_view word, int root);

  const ModuleTree& tree_;
  const Scopes& scopes_;
  std::vector<bool> is_block_;  // for each scope
  std::unordered_map<const Graph*, Body> bodies_;
};

}  // namespace tonnx
