// unflatten.cpp - aten: recognises reshapes that split one dimension, and repeat the sizes of all others.
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

/// reshape(x, [n, k, 8, 64]) of a tensor [n, k, 512]: unflatten(x, 2, [8, 64]), which needs none of the other sizes
bool replace(Graph& graph, Node& node) {
  if (!is_aten(node, "reshape")) return false;
  Value* x = operand(node, "self");
  const Attribute* target = node.find_attribute("shape");
  const auto* sizes = target ? target->value.get<AttrList>() : nullptr;
  const auto& to = node.output(0)->type.shape;
  if (sizes == nullptr || x == nullptr || !x->type.shape || !to || sizes->size() != to->size()) return false;
  const auto split = find_split(*x->type.shape, *to);
  if (!split) return false;
  int64_t product = 1;
  std::vector<int64_t> parts;
  for (size_t i = split->dim; i < split->dim + split->count; ++i) {
    const auto size = (*to)[i].constant();
    if (!size || *size <= 0 || *size > (int64_t{1} << 31)) return false;
    parts.push_back(*size);
    product *= *size;
  }
  if ((*x->type.shape)[split->dim].constant() != product) return false;
  Node* made = graph.add_node("aten", "unflatten", &node);
  made->overload = "int";
  made->name = node.name;
  made->metadata = node.metadata;
  add_operand(*made, "self", x);
  const bool is_last = split->dim + 1 == x->type.shape->size();
  made->attributes.push_back({"dim", is_last ? int64_t{-1} : static_cast<int64_t>(split->dim), AttrType::None, {}, {}});
  made->attributes.push_back({"sizes", std::move(parts), AttrType::None, {}, {}});
  graph.move_output(node.output(0), made, 0);
  node.resize_outputs(0);
  return true;
}

}  // namespace

void recognise_unflatten(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_unflatten(*subgraph);
    if (replace(graph, *node)) graph.erase(node);
    node = next;
  }
}

}  // namespace tonnx
