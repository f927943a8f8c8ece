// nesting.cpp - nests short expressions into those that use them.
#include "formats/python/nesting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "formats/modules/loops.h"
#include "formats/modules/variants.h"
#include "formats/python/control_flow.h"
#include "formats/python/expressions.h"

namespace tonnx::python {
namespace {

constexpr size_t kNestedWidth = 100;  // a statement of forward with nested expressions stays below this
constexpr int kNestedDepth = 4;       // and has at most so many calls inside one another
constexpr int kReach = 24;            // an expression moves at most so many nodes down
constexpr size_t kShort = 48;         // one of several outputs stays below this
constexpr size_t kVariable = 4;       // what the name of a variable among them takes

bool can_nest(const Node& node, const Node& user, const Positions& positions) {
  if (node.outputs().size() != 1 || node.output(0)->uses.size() != 1 || node.graph != user.graph) return false;
  return !is_control(node) && !is_call_each(node) && positions.at(&user) - positions.at(&node) <= kReach;
}

/// `a + b` reads as one expression with what is inside it; a call does not.
bool is_operator(const Node& node) {
  if (is_call(node) || is_control(node)) return false;
  const std::string_view spelling = get_aten_op(node).op->python;
  return !spelling.empty() && spelling[0] != '.' && !std::isalpha(static_cast<unsigned char>(spelling[0]));
}

bool is_subscript(const Node& node) { return !is_call(node) && get_aten_op(node).op->subscript; }

}  // namespace

Positions positions_of(const Graph& graph) {
  Positions result;
  int index = 0;
  for (const Node& node : graph) result[&node] = index++;
  return result;
}

bool is_number(const Value& value) {
  const Type::Kind kind = value.type.kind;
  return kind == Type::Kind::Int || kind == Type::Kind::IntList || kind == Type::Kind::Float ||
         kind == Type::Kind::Bool;
}

/// What is made of constants, for modules only, is a weight of theirs that no text mentions.
void Nesting::hide_weights(const Graph& graph, const Expressions& expressions) {
  for (const Node& node : graph) {
    if (node.outputs().size() != 1 || node.inputs().empty() || is_control(node)) continue;
    const bool is_constant = std::all_of(node.inputs().begin(), node.inputs().end(),
                                         [](const Value* input) { return input && input->constant; });
    const std::vector<Use>& uses = node.output(0)->uses;
    const bool is_weight = is_constant && !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
                             return use.user && expressions.is_submodule_weight(*use.user, node.output(0));
                           });
    if (is_weight) {
      nested_.insert(&node);
      hidden_.insert(&node);
    }
  }
}

void Nesting::choose(const Graph& graph, const Positions& positions, const Expressions& expressions, int level) {
  width_ = kNestedWidth - 4 * static_cast<size_t>(std::min(level, 10));
  hide_weights(graph, expressions);
  for (const Node& node : graph) choose_inputs(node, positions, expressions);
  choose_outputs(graph, expressions, level == 0);
}

void Nesting::choose_inputs(const Node& node, const Positions& positions, const Expressions& expressions) {
  if (is_control(node)) {  // its inputs are named, but for the number of iterations
    const Value* first = node.input(0);
    if (first && is_number(*first) && first->producer && can_nest(*first->producer, node, positions))
      nested_.insert(first->producer);
    return;
  }
  if (is_call_each(node) || is_optional_add(node)) return;
  std::vector<const Node*> candidates;
  for (const Value* input : node.inputs()) {
    const Node* maker = input ? input->producer : nullptr;
    if (maker && !hidden_.contains(maker) && can_nest(*maker, node, positions)) candidates.push_back(maker);
  }
  for (const Node* candidate : candidates) nested_.insert(candidate);
  drop_repeated(node, candidates, expressions);
  const auto measure = [&] { return std::pair(expressions.width(node), depth(node)); };
  auto [width, levels] = measure();
  while (!candidates.empty() && (width > width_ || levels > kNestedDepth)) {
    const auto largest = std::max_element(candidates.begin(), candidates.end(), [&](const Node* a, const Node* b) {
      return std::pair(depth(*a), expressions.width(*a)) < std::pair(depth(*b), expressions.width(*b));
    });
    nested_.erase(*largest);
    candidates.erase(largest);
    std::tie(width, levels) = measure();
  }
}

/// What the text of a node has twice is a variable.
void Nesting::drop_repeated(const Node& node, std::vector<const Node*>& candidates, const Expressions& expressions) {
  if (candidates.empty() || expressions.is_module(node) || get_aten_op(node).op->emit == nullptr) return;
  const auto mark_of = [](const Value* value) { return fmt::format("<{}>", static_cast<const void*>(value)); };
  const std::string all = expressions.spelled_with(
      node, [&](const Value* value) { return is_inside(value) ? mark_of(value) : std::string(); });
  std::erase_if(candidates, [&](const Node* candidate) {
    const std::string mark = mark_of(candidate->output(0));
    const bool is_repeated = all.find(mark) != all.rfind(mark);
    if (is_repeated) nested_.erase(candidate);
    return is_repeated;
  });
}

/// How many calls stand inside one another.
int Nesting::depth(const Node& node) const {
  int deepest = 0;
  for (const Value* input : node.inputs()) {
    if (!input || !is_inside(input) || hidden_.contains(input->producer)) continue;
    const bool same_brackets = is_subscript(node) && is_subscript(*input->producer) && input == node.input(0);
    deepest = std::max(deepest, depth(*input->producer) - (same_brackets ? 1 : 0));
  }
  return deepest + (is_operator(node) ? 0 : 1);
}

/// What is returned, or carried on to the next iteration, need not be a variable first.
void Nesting::choose_outputs(const Graph& graph, const Expressions& expressions, bool is_forward) {
  size_t total = 0;
  for (const Value* output : graph.outputs()) {
    const Node* producer = output->producer;
    if (!producer || producer->graph != &graph || producer->outputs().size() != 1 || output->uses.size() != 1 ||
        is_control(*producer) || is_call_each(*producer))
      continue;
    if (graph.outputs().size() > 1) {
      const size_t width = expressions.width(*producer);
      if (width > kShort || depth(*producer) > 1) continue;
      total += width;
      if (is_forward && total + graph.outputs().size() * kVariable > width_) continue;
    }
    nested_.insert(producer);
  }
}

}  // namespace tonnx::python
