// bodies.cpp - looks for blocks in each graph, from the outermost on.
#include "modules/bodies.h"

#include <algorithm>

namespace tonnx {
namespace {

constexpr size_t kManyCalls = 4;    // of layers: a branch or body with fewer is written as it is
constexpr size_t kMostBodies = 64;  // in which blocks are looked for

size_t calls_in(const Graph& graph, const ModuleTree& tree) {
  size_t count = 0;
  for (const Node& node : graph) count += tree.submodule_of.contains(&node) ? 1 : 0;
  return count;
}

/// `then_branch` gives `then`.
std::string_view word_of_body(std::string_view attribute) { return attribute.substr(0, attribute.find('_')); }

}  // namespace

Bodies::Bodies(const Graph& graph, const ModuleTree& tree, const Scopes& scopes)
    : tree_(tree), scopes_(scopes), is_block_(static_cast<size_t>(scopes.count()), false) {
  add(graph, "main", 0);
}

const Body* Bodies::find(const Graph& graph) const {
  const auto at = bodies_.find(&graph);
  return at == bodies_.end() ? nullptr : &at->second;
}

bool Bodies::has_blocks() const { return std::count(is_block_.begin(), is_block_.end(), true) > 1; }

void Bodies::add(const Graph& graph, std::string_view word, int root) {
  Body body{word, find_blocks(graph, tree_, scopes_, root)};
  const bool has_more = std::count(body.blocks.is_block.begin(), body.blocks.is_block.end(), true) > 1;
  if (graph.owner != nullptr && !has_more) return;
  for (size_t i = 0; i < is_block_.size(); ++i) is_block_[i] = is_block_[i] || body.blocks.is_block[i];
  const Blocks& blocks = bodies_.emplace(&graph, std::move(body)).first->second.blocks;
  for (const Node& node : graph) {
    for (const Attribute& attribute : node.attributes) {
      const auto* inner = attribute.value.get<GraphPtr>();
      if (inner && bodies_.size() < kMostBodies && calls_in(**inner, tree_) >= kManyCalls)
        add(**inner, word_of_body(attribute.name), blocks.block_of.at(&node));
    }
  }
}

}  // namespace tonnx
