// unflatten.cpp - aten: recognises reshapes that split or add one dimension, and repeat the sizes of all others.
#include <algorithm>

#include "passes/aten/match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// The dimension that the dimensions of `to` which are not in `from` were, and how many they are now.
struct Split {
  size_t dim = 0, count = 0;
};
std::optional<Split> find_split(const Shape& from, const Shape& to) {
  if (from.empty() || to.size() <= from.size()) return std::nullopt;
  const auto kept = static_cast<size_t>(std::mismatch(from.begin(), from.end(), to.begin()).first - from.begin());
  const size_t dim = std::min(kept, from.size() - 1);
  const size_t count = to.size() - from.size() + 1;
  const bool stay = std::equal(from.begin() + static_cast<std::ptrdiff_t>(dim) + 1, from.end(),
                               to.begin() + static_cast<std::ptrdiff_t>(dim + count));
  return stay ? std::optional(Split{dim, count}) : std::nullopt;
}

/// Where `to` has one dimension of size 1 more than `from`.
std::optional<size_t> find_new_dim(const Shape& from, const Shape& to) {
  if (to.size() != from.size() + 1) return std::nullopt;
  const auto kept = static_cast<size_t>(std::mismatch(from.begin(), from.end(), to.begin()).first - from.begin());
  const auto at = static_cast<std::ptrdiff_t>(kept);
  const bool fits = to[kept] == Dim(1) && std::equal(from.begin() + at, from.end(), to.begin() + at + 1);
  return fits ? std::optional(kept) : std::nullopt;
}

/// The sizes that one dimension is split into; nothing where they are not known, not all of it, or are there for ones.
std::optional<std::vector<int64_t>> find_sizes(const Shape& from, const Shape& to, const Split& split) {
  int64_t product = 1;
  std::vector<int64_t> sizes;
  for (size_t i = split.dim; i < split.dim + split.count; ++i) {
    const auto size = to[i].constant();
    if (!size || *size <= 1 || *size > (int64_t{1} << 31) / product) return std::nullopt;
    sizes.push_back(*size);
    product *= *size;
  }
  return from[split.dim].constant() == product ? std::optional(sizes) : std::nullopt;
}

/// 1. reshape(x, [n, k, 8, 64]) of a tensor [n, k, 512]: unflatten(x, 2, [8, 64]), which needs none of the other sizes
/// 2. reshape(x, [n, 1, k]) of a tensor [n, k]: unsqueeze(x, 1)
bool split_dim(Graph& graph, Node& node) {
  if (!is_aten(node, "reshape")) return false;
  Value* x = operand(node, "self");
  const Attribute* target = node.find_attribute("shape");
  const bool is_list = target && (target->value.get<AttrList>() || target->value.get<std::vector<int64_t>>());
  const auto& to = node.output(0)->type.shape;
  if (!is_list || x == nullptr || !x->type.shape || !to) return false;
  const Shape& from = *x->type.shape;
  const auto added = find_new_dim(from, *to);
  const auto split = added ? std::nullopt : find_split(from, *to);
  auto sizes = split ? find_sizes(from, *to, *split) : std::nullopt;
  if (!added && !sizes) return false;
  Node* made = graph.add_node("aten", added ? "unsqueeze" : "unflatten", &node);
  if (!added) made->overload = "int";
  made->name = node.name;
  made->metadata = node.metadata;
  add_operand(*made, "self", x);
  const bool is_last = split && split->dim + 1 == from.size();
  const auto dim = static_cast<int64_t>(added ? *added : split->dim);
  made->attributes.push_back({"dim", is_last ? int64_t{-1} : dim, AttrType::None, {}, {}});
  if (sizes) made->attributes.push_back({"sizes", std::move(*sizes), AttrType::None, {}, {}});
  graph.move_output(node.output(0), made, 0);
  node.resize_outputs(0);
  return true;
}

}  // namespace

void recognise_unflatten(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_unflatten(*subgraph);
    if (split_dim(graph, *node)) graph.erase(node);
    node = next;
  }
}

}  // namespace tonnx
