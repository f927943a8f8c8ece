// blocks.h - which places of a model are called as one, and in which order things happen inside each.
#pragma once
#include <unordered_map>
#include <variant>
#include <vector>

#include "modules/scopes.h"

namespace tonnx {

/// What happens inside a block: a node, or a call of a block inside it.
struct BlockItem {
  const Node* node = nullptr;
  int scope = -1;  // the block that is called, where it is no node
};

struct Blocks {
  std::vector<bool> is_block;                     // for each scope
  std::vector<std::vector<BlockItem>> items;      // for each scope: in an order that can be computed
  std::unordered_map<const Node*, int> block_of;  // the innermost block of each node of the graph
};

/// `root`: the place of the graph itself, which is a block.
Blocks find_blocks(const Graph& graph, const ModuleTree& tree, const Scopes& scopes, int root);

}  // namespace tonnx
