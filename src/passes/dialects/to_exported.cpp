// to_exported.cpp - the order of the steps, and integers that turned out to be known.
#include "passes/dialects/to_exported.h"

#include <algorithm>

#include "passes/frame/aten_match.h"
#include "passes/frame/graph_types.h"

namespace tonnx {
namespace {

/// Puts a number in the place of an input; whether the argument held it.
bool put_number(AttrValue& value, uint32_t index, int64_t number) {
  if (const auto* at = value.get<Operand>()) {
    if (at->index != index) return false;
    value = number;
    return true;
  }
  auto* list = value.get<AttrList>();
  if (list == nullptr) return false;
  bool found = false;
  for (AttrValue& item : *list) found = put_number(item, index, number) || found;
  return found;
}

/// A list of plain numbers, where all of its items are.
void simplify_list(AttrValue& value) {
  const auto* list = value.get<AttrList>();
  if (list == nullptr || list->empty()) return;
  std::vector<int64_t> numbers;
  for (const AttrValue& item : *list) {
    const auto* number = item.get<int64_t>();
    if (number == nullptr) return;
    numbers.push_back(*number);
  }
  value = std::move(numbers);
}

void fold_number(Value& value, int64_t number) {
  const std::vector<Use> uses = value.uses;
  for (const Use& use : uses) {
    if (use.user == nullptr) continue;
    for (Attribute& attribute : use.user->attributes) {
      if (put_number(attribute.value, use.index, number)) simplify_list(attribute.value);
    }
    use.user->set_input(use.index, nullptr);
  }
}

}  // namespace

void fold_numbers(Graph& graph) {
  for (Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) fold_numbers(*inner);
    for (Value* output : node.outputs()) {
      if (output == nullptr || output->type.kind != Type::Kind::Int || !output->known_ints) continue;
      if (const auto number = output->known_ints->at(0).constant()) fold_number(*output, *number);
    }
  }
}

namespace {

constexpr int64_t kMaxUnrolled = 50000;  // nodes that all loops of a model may become
constexpr int kMaxRounds = 8;

void require_exported(const Graph& graph) {
  for (const Node& node : graph) {
    const bool is_list = node.op == "list" && graph.owner == nullptr;
    if (node.domain == "tonnx" && !is_list) fail_unsupported("{} has no place in a .pt2 file", node.op.view());
    for (const GraphPtr& subgraph : subgraphs_of(node)) require_exported(*subgraph);
  }
}

/// What a branch gives is known once it is decided, and may decide others.
void decide_branches(Graph& graph, const std::string& prefix, int64_t& budget) {
  infer_aten_types(graph, prefix);
  fold_numbers(graph);
  for (int round = 0; round < kMaxRounds && unroll_loops(graph, budget); ++round) {
    infer_aten_types(graph, fmt::format("{}{}", prefix, round));
    fold_numbers(graph);
  }
}

}  // namespace

void to_exported(Graph& graph) {
  int64_t budget = kMaxUnrolled;
  decide_branches(graph, "a", budget);
  infer_aten_types(graph, "b");
  fold_numbers(graph);
  resolve_lists(graph);
  decide_branches(graph, "c", budget);  // by the ranks of what lists gave
  rewrite_numbers(graph);
  make_higher_order(graph);
  infer_aten_types(graph, "d");
  fold_numbers(graph);
  remove_unused_nodes(graph);
  name_unseen_sizes(graph);
  require_exported(graph);
}

}  // namespace tonnx
