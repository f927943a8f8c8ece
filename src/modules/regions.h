// regions.h - parts of a graph that one tensor goes into and one comes out of.
#pragma once
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// The nodes between the tensor that all of it begins with and the node that gives its result, which is the last one.
/// Each stands behind those that it needs, in an order that depends on the last one alone.
struct Region {
  std::vector<const Node*> nodes;
  const Value* entry = nullptr;
  const Node* exit() const { return nodes.back(); }
};

/// Regions that end where values meet, as at the end of a residual block; a function that follows is part of it. They
/// are inside one another or apart. `is_open` says which nodes may be in one.
std::vector<Region> find_regions(const Graph& graph, const std::function<bool(const Node&)>& is_open);

}  // namespace tonnx
