// nesting.cpp - nests short expressions into those that use them.
#include "formats/python/statements/nesting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "formats/python/control_flow/control_flow.h"
#include "formats/python/statements/expressions.h"
#include "modules/loops.h"
#include "modules/variants.h"

namespace tonnx::python {
namespace {

constexpr size_t kNestedWidth = 104;  // a statement of forward with nested expressions stays below this
constexpr int kNestedDepth = 4;       // and has at most so many calls inside the brackets of one another
constexpr int kReach = 24;            // an expression moves at most so many nodes down
constexpr size_t kShort = 48;         // one of several outputs stays below this
constexpr size_t kVariable = 4;       // what the name of a variable among them takes
constexpr size_t kProjections = 76;   // the names of three layers, and what is made of their results
constexpr size_t kArgument = 12;      // and what that of an argument takes more than a number

/// The layer that the chain of nested nodes begins with; null where it is none, or where it takes other variables.
const Node* layer_behind(const Node& node, const Nesting& nesting, const Expressions& expressions) {
  const Node* at = &node;
  while (!expressions.is_module(*at)) {
    const bool is_chain = at->inputs().size() == 1 && at->input(0) && nesting.is_inside(at->input(0));
    if (!is_chain) return nullptr;
    at = at->input(0)->producer;
  }
  return is_call(*at) || at->input(0) == nullptr || nesting.is_inside(at->input(0)) ? nullptr : at;
}

/// How many calls of a text stand inside the brackets of one another: one of `x.transpose(1, 2).flatten(2)`.
int depth_of_calls(std::string_view text) {
  int depth = 0, deepest = 0;
  std::string brackets;  // that are open: 'c' for those of a call
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') {
      const bool is_call =
          c == '(' && i > 0 &&
          (std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 || text[i - 1] == '_' || text[i - 1] == ']');
      brackets.push_back(is_call ? 'c' : c);
      if (is_call) deepest = std::max(deepest, ++depth);
    } else if ((c == ')' || c == ']' || c == '}') && !brackets.empty()) {
      if (brackets.back() == 'c') --depth;
      brackets.pop_back();
    }
  }
  return deepest;
}

/// The sizes of a reshape may be arguments of the class in the end: `self.channels`.
size_t width_of(std::string_view text) {
  const bool has_sizes =
      text.find(".reshape(") != std::string_view::npos || text.find(".unflatten(") != std::string_view::npos;
  return text.size() + (has_sizes ? kArgument : 0);
}

/// The length of a text, and how deep its calls are.
std::pair<size_t, int> measure(std::string_view text) { return {width_of(text), depth_of_calls(text)}; }

std::pair<size_t, int> measure(const Node& node, const Expressions& expressions) {
  return measure(expressions.expression(node).first);
}

bool is_one_of_kept(const Node* node) { return node != nullptr && loop_of_kept(*node) != nullptr; }

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

bool Nesting::can_nest(const Node& node, const Node& user, const Positions& positions) const {
  if (node.outputs().size() != 1 || node.output(0)->uses.size() != 1 || node.graph != user.graph) return false;
  if (apart_.contains(&node)) return false;
  if (is_control(node) || is_call_each(node)) return false;
  return is_one_of_kept(&node) || positions.at(&user) - positions.at(&node) <= kReach;
}

const Projections* Nesting::find_projections(const Node* node) const {
  const auto at = projections_.find(node);
  return at == projections_.end() ? nullptr : &at->second;
}

/// `q, k, v = (f(x).unflatten(-1, (4, 8)).transpose(1, 2) for f in (self.query, self.key, self.value))`, or `k, v`
/// where the query is made of something else.
void Nesting::find_projections_of(const Node& attention, const Positions& positions, const Expressions& expressions) {
  Projections found;
  std::string move;  // what is written behind the name of the layer
  size_t names = 0;
  for (const std::string_view argument : {"value", "key", "query"}) {
    const auto* operand = attention.find_attribute(argument)->value.get<Operand>();
    const Value* value = operand ? attention.input(operand->index) : nullptr;
    const Node* node = value ? value->producer : nullptr;
    if (node == nullptr || nested_.contains(node) || !can_nest(*node, attention, positions)) break;
    const Node* layer = layer_behind(*node, *this, expressions);
    if (layer == nullptr || layer == node) break;
    const std::string name = expressions.name_of_layer(*layer), text = expressions.expression(*node).first;
    const bool is_first = found.nodes.empty();
    if (!text.starts_with(name + "(") || (!is_first && layer->input(0) != found.layers[0]->input(0))) break;
    if (!is_first && text.substr(name.size()) != move) break;
    move = text.substr(name.size());
    names += name.size();
    found.nodes.insert(found.nodes.begin(), node);
    found.layers.insert(found.layers.begin(), layer);
  }
  if (found.nodes.size() < 2 || names + move.size() > kProjections) return;
  const Node* first = *std::min_element(found.nodes.begin(), found.nodes.end(), [&](const Node* a, const Node* b) {
    return positions.at(a) < positions.at(b);
  });
  for (const Node* node : found.nodes) {
    apart_.insert(node);
    if (node != first) done_before_.insert(node);
  }
  projections_.emplace(first, std::move(found));
}

void Nesting::choose(const Graph& graph, const Positions& positions, const Expressions& expressions, int level) {
  width_ = kNestedWidth - 4 * static_cast<size_t>(std::min(level, 10));
  hide_weights(graph, expressions);
  for (const Node& node : graph) {
    if (node.domain == "aten" && node.op == "scaled_dot_product_attention")
      find_projections_of(node, positions, expressions);
    choose_inputs(node, positions, expressions);
  }
  choose_outputs(graph, expressions, level == 0);
  texts_.clear();
}

const std::pair<std::string, int>* Nesting::find_text(const Node* node) const {
  const auto at = texts_.find(node);
  return at == texts_.end() ? nullptr : &at->second;
}

void Nesting::choose_inputs(const Node& node, const Positions& positions, const Expressions& expressions) {
  if (is_control(node)) {  // its inputs are named, but for the number of iterations
    const Value* first = node.input(0);
    if (first && is_number(*first) && first->producer && can_nest(*first->producer, node, positions))
      nested_.insert(first->producer);
    return;
  }
  if (is_call_each(node)) {
    for (const Value* input : node.inputs()) {
      if (input && is_one_of_kept(input->producer) && can_nest(*input->producer, node, positions))
        nested_.insert(input->producer);
    }
    return;
  }
  if (is_optional_add(node)) return;
  std::vector<const Node*> candidates;
  for (const Value* input : node.inputs()) {
    const Node* maker = input ? input->producer : nullptr;
    if (maker && !hidden_.contains(maker) && can_nest(*maker, node, positions)) candidates.push_back(maker);
  }
  for (const Node* candidate : candidates) nested_.insert(candidate);
  drop_repeated(node, candidates, expressions);
  std::pair<std::string, int> text = expressions.expression(node);
  auto [width, levels] = measure(text.first);
  while (!candidates.empty() && (width > width_ || levels > kNestedDepth)) {
    const auto size = [&](const Node* each) {
      const auto [own_width, own_levels] = measure(*each, expressions);
      return std::pair(own_levels, own_width);
    };
    const auto largest = std::max_element(candidates.begin(), candidates.end(),
                                          [&](const Node* a, const Node* b) { return size(a) < size(b); });
    nested_.erase(*largest);
    candidates.erase(largest);
    text = expressions.expression(node);
    std::tie(width, levels) = measure(text.first);
  }
  texts_.emplace(&node, std::move(text));
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

/// What is returned, or carried on to the next iteration, need not be a variable first.
void Nesting::choose_outputs(const Graph& graph, const Expressions& expressions, bool is_forward) {
  size_t total = 0;
  std::vector<const Node*> long_ones;  // one of several outputs may be so
  for (const Value* output : graph.outputs()) {
    const Node* producer = output->producer;
    if (!producer || producer->graph != &graph || producer->outputs().size() != 1 || output->uses.size() != 1 ||
        is_control(*producer) || is_call_each(*producer))
      continue;
    if (is_one_of_kept(producer)) {
      nested_.insert(producer);
      continue;
    }
    if (graph.outputs().size() > 1) {
      const auto [width, levels] = measure(*producer, expressions);
      if (width > kShort || levels > 1) {
        long_ones.push_back(producer);
        continue;
      }
      total += width;
      if (is_forward && total + graph.outputs().size() * kVariable > width_) continue;
    }
    nested_.insert(producer);
  }
  for (const Node* each : long_ones) {
    const size_t width = measure(*each, expressions).first;
    if (!is_forward || total + width + graph.outputs().size() * kVariable > width_) continue;
    nested_.insert(each);
    break;
  }
}

}  // namespace tonnx::python
