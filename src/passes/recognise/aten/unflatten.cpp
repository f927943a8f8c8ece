// unflatten.cpp - aten: recognises reshapes that split, join or add one dimension or two, and repeat the sizes of all
// others.
#include <algorithm>

#include "passes/frame/aten_match.h"
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

/// Which dimensions of `fine` each one of `coarse` is made of: the first, and how many. Nothing where sizes leave a
/// choice, as those of 1 do.
std::optional<std::vector<Split>> find_groups(const Shape& coarse, const Shape& fine) {
  std::vector<Split> groups;
  size_t at = 0;
  for (const Dim& size : coarse) {
    Split group{at, 0};
    Dim product(1);
    while (at < fine.size() && (group.count == 0 || !(product == size))) {
      if (fine[at].is(1)) return std::nullopt;
      product = product * fine[at++];
      ++group.count;
    }
    if (!(product == size)) return std::nullopt;
    groups.push_back(group);
  }
  return at == fine.size() ? std::optional(groups) : std::nullopt;
}

/// The two groups that are more than one dimension each; nothing where there are more or fewer.
std::optional<std::pair<Split, Split>> two_of(const std::optional<std::vector<Split>>& groups, size_t& first_dim,
                                              size_t& second_dim) {
  std::vector<size_t> wide;
  for (size_t i = 0; groups && i < groups->size(); ++i) {
    if ((*groups)[i].count > 1) wide.push_back(i);
  }
  if (wide.size() != 2) return std::nullopt;
  first_dim = wide[0];
  second_dim = wide[1];
  return std::pair((*groups)[wide[0]], (*groups)[wide[1]]);
}

Node* add_like(Graph& graph, Node& node, std::string_view op, std::string_view overload, Value* x) {
  Node* made = graph.add_node("aten", op, &node);
  made->overload = overload;
  made->name = node.name;
  made->metadata = node.metadata;
  add_operand(*made, "self", x);
  return made;
}

/// The second of two steps gives what the node gave.
void end_with(Graph& graph, Node& node, Node& made) {
  graph.move_output(node.output(0), &made, 0);
  node.resize_outputs(0);
}

/// 3. reshape(x, [n, h / 7, 7, w / 7, 7, c]) of a tensor [n, h, w, c]: unflatten(unflatten(x, 2, [-1, 7]), 1, [-1, 7])
bool split_two(Graph& graph, Node& node, Value* x, const Shape& from, const Shape& to) {
  size_t first = 0, second = 0;
  const auto groups = two_of(find_groups(from, to), first, second);
  if (!groups || groups->first.count != 2 || groups->second.count != 2) return false;
  const auto sizes = [&](const Split& group) { return to[group.dim + 1].constant(); };
  if (!sizes(groups->first) || !sizes(groups->second)) return false;
  const auto add = [&](Value* value, size_t dim, int64_t size) {
    Node* made = add_like(graph, node, "unflatten", "int", value);
    made->attributes.push_back({"dim", static_cast<int64_t>(dim), AttrType::None, {}, {}});
    made->attributes.push_back({"sizes", std::vector<int64_t>{-1, size}, AttrType::None, {}, {}});
    return made;
  };
  Node* behind = add(x, second, *sizes(groups->second));
  Type type = x->type;
  type.shape = Shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(second));
  type.shape->insert(type.shape->end(), to.begin() + static_cast<std::ptrdiff_t>(groups->second.dim), to.end());
  Value* between = graph.add_output_to(behind, graph.unique_name(x->name), type);
  end_with(graph, node, *add(between, first, *sizes(groups->first)));
  return true;
}

/// 4. reshape(x, [n * h * w, 49, c]) of a tensor [n, h, w, 7, 7, c]: flatten(flatten(x, 3, 4), 0, 2)
bool join_two(Graph& graph, Node& node, Value* x, const Shape& from, const Shape& to) {
  size_t first = 0, second = 0;
  const auto groups = two_of(find_groups(to, from), first, second);
  if (!groups) return false;
  const auto add = [&](Value* value, const Split& group) {
    Node* made = add_like(graph, node, "flatten", "using_ints", value);
    const bool to_last = group.dim + group.count == value->type.shape->size();
    const auto last = to_last ? int64_t{-1} : static_cast<int64_t>(group.dim + group.count - 1);
    made->attributes.push_back({"start_dim", static_cast<int64_t>(group.dim), AttrType::None, {}, {}});
    made->attributes.push_back({"end_dim", last, AttrType::None, {}, {}});
    return made;
  };
  Node* behind = add(x, groups->second);
  Type type = x->type;
  type.shape = Shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(groups->second.dim));
  type.shape->insert(type.shape->end(), to.begin() + static_cast<std::ptrdiff_t>(second), to.end());
  Value* between = graph.add_output_to(behind, graph.unique_name(x->name), type);
  end_with(graph, node, *add(between, groups->first));
  return true;
}

/// Reshapes that do the same to two dimensions need no size of the others.
bool move_two(Graph& graph, Node& node) {
  Value* x = is_aten(node, "reshape") ? operand(node, "self") : nullptr;
  const auto& to = node.output(0) ? node.output(0)->type.shape : std::nullopt;
  if (x == nullptr || !x->type.shape || !to) return false;
  const Shape from = *x->type.shape, goal = *to;
  return split_two(graph, node, x, from, goal) || join_two(graph, node, x, from, goal);
}

}  // namespace

void recognise_unflatten(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_unflatten(*subgraph);
    if (split_dim(graph, *node) || move_two(graph, *node)) graph.erase(node);
    node = next;
  }
}

}  // namespace tonnx
