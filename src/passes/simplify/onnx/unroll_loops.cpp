// unroll_loops.cpp - Loops that carry what does not change, and Loops of a few known iterations.
#include <algorithm>

#include "ir/clone.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

constexpr int64_t kMostIterations = 16;
constexpr int64_t kMostNodes = 10000;

/// The body of a Loop whose inputs and outputs fit the node; null for other nodes.
GraphPtr body_of(const Node& node) {
  if (!is_onnx(node, kLoop)) return nullptr;
  const Attribute* attribute = node.find_attribute("body");
  const auto* found = attribute ? attribute->value.get<GraphPtr>() : nullptr;
  if (found == nullptr || *found == nullptr) return nullptr;
  const Graph& body = **found;
  const size_t inputs = node.inputs().size();
  const bool fits = inputs >= 2 && body.inputs().size() == inputs && body.outputs().size() + 1 >= inputs &&
                    node.outputs().size() < body.outputs().size();
  return fits ? *found : nullptr;
}

const Value* without_copies(const Value* value, const Graph& graph) {
  while (value->graph == &graph && is_onnx(value->producer, kIdentity) && value->producer->input(0))
    value = value->producer->input(0);
  return value;
}

/// The places among the inputs whose value is the same in every iteration, and that nothing of the model is called
/// after.
std::vector<size_t> find_invariants(const Node& node, const Graph& body) {
  std::vector<size_t> result;
  for (size_t i = 2; i < node.inputs().size(); ++i) {
    const Value* outside = node.input(i);
    const Value* given_on = without_copies(body.outputs()[i - 1], body);
    if (outside == nullptr || (given_on != body.inputs()[i] && given_on != outside)) continue;
    const Value* output = node.output(i - 2);
    if (output == nullptr || !is_graph_output(output)) result.push_back(i);
  }
  return result;
}

bool is_true(const Value* value) {
  const auto flag = value && value->constant ? ints_of(*value->constant) : std::nullopt;
  return flag && flag->size() == 1 && flag->front() != 0;
}

/// How often a Loop runs, where that is a small number that is known.
std::optional<int64_t> find_count(const Node& node, const Graph& body) {
  const Value* count = node.input(0);
  const auto number = count && count->constant ? ints_of(*count->constant) : std::nullopt;
  if (!number || number->size() != 1 || number->front() > kMostIterations) return std::nullopt;
  if ((node.input(1) != nullptr && !is_true(node.input(1))) || !is_true(body.outputs()[0])) return std::nullopt;
  return std::max<int64_t>(number->front(), 0);
}

int64_t count_nodes(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph) {
    ++count;
    for (const GraphPtr& inside : subgraphs_of(node)) count += count_nodes(*inside);
  }
  return count;
}

/// Puts one iteration in front of the Loop, and gives what the body's outputs are there.
std::vector<Value*> put_iteration(Node& node, const Graph& body, const ValueMap& constants, ValueMap& map) {
  Graph& graph = *node.graph;
  const Node* before = node.previous;
  clone_nodes(body, graph, &node, map);
  // sizes may be others in each iteration
  for (Node* made = before ? before->next : graph.first(); made != &node; made = made->next) {
    for (Value* output : made->outputs()) {
      if (output != nullptr) output->type.shape.reset();
    }
  }
  std::vector<Value*> results;
  for (Value* output : body.outputs()) results.push_back(copy_of(copy_of(output, map), constants));
  return results;
}

/// Makes a value the output of the graph that the Loop gave.
void hand_over(Value* output, Value* by, Node& node) {
  Node* copy = node.graph->add_node("", kIdentity, &node);
  copy->version = node.version;
  copy->set_input(0, by);
  node.graph->move_output(output, copy, 0);
}

/// What was collected, one behind the other along a new first axis.
Value* stacked(const std::vector<Value*>& values, Node& node, Rewriter& rewriter) {
  Value* axes = rewriter.ints(*node.graph, {0}, "axes");
  std::vector<Value*> rows;
  for (Value* value : values) {
    Value* row = rewriter.add(node, {.op = "Unsqueeze", .inputs = {value, axes}});
    if (row == nullptr) return nullptr;
    rows.push_back(row);
  }
  Attribute axis{"axis", int64_t{0}, AttrType::None, {}, {}};
  return rewriter.add(node, {.op = "Concat", .inputs = std::move(rows), .attributes = {axis}});
}

}  // namespace

bool loop_invariants(Node& node, Rewriter& rewriter) {
  const GraphPtr body = body_of(node);
  if (body == nullptr) return false;
  // 1. What a body gives on as it got it is the value from outside, in every iteration and behind the Loop.
  const std::vector<size_t> invariants = find_invariants(node, *body);
  if (invariants.empty()) return false;
  const auto is_invariant = [&](size_t i) { return std::binary_search(invariants.begin(), invariants.end(), i); };
  Graph& graph = *node.graph;
  for (const size_t i : invariants) {
    body->replace_uses(body->inputs()[i], node.input(i));
    if (node.output(i - 2) != nullptr) graph.replace_uses(node.output(i - 2), node.input(i));
  }
  Node* made = graph.add_node("", kLoop, &node);
  made->version = node.version;
  made->name = node.name;
  made->metadata = node.metadata;
  node.take_attribute("body");
  made->set_attribute("body", body);
  body->owner = made;
  size_t kept = 0;
  const size_t inputs = node.inputs().size(), outputs = node.outputs().size();
  std::vector<Value*> given;
  for (size_t i = 0; i < outputs; ++i) given.push_back(node.output(i));
  for (size_t i = 0; i < outputs; ++i) {
    if (i + 2 < inputs && is_invariant(i + 2)) continue;
    if (given[i] != nullptr)
      graph.move_output(given[i], made, kept);
    else
      made->resize_outputs(kept + 1);
    ++kept;
  }
  for (size_t i = 0, at = 0; i < inputs; ++i) {
    if (!is_invariant(i)) made->set_input(at++, node.input(i));
  }
  for (size_t k = invariants.size(); k-- > 0;) {
    body->remove_input(invariants[k]);
    body->remove_output(invariants[k] - 1);
  }
  rewriter.erase_unused(&node);
  return true;
}

bool unroll_loops(Node& node, Rewriter& rewriter) {
  const GraphPtr body = body_of(node);
  const auto count = body ? find_count(node, *body) : std::nullopt;
  if (!count || count_nodes(*body) * *count > kMostNodes) return false;
  const size_t carried = node.inputs().size() - 2;
  if (*count == 0 && node.outputs().size() > carried) return false;
  Graph& graph = *node.graph;
  Node* const before = node.previous;
  // 1. The nodes of the body, as often as it runs; its constants are there once.
  std::vector<Value*> values(node.inputs().begin() + 2, node.inputs().end());
  if (std::find(values.begin(), values.end(), nullptr) != values.end()) return false;
  std::vector<std::vector<Value*>> collected(body->outputs().size() - 1 - carried);
  Value* go_on = *count > 0 ? rewriter.constant(graph, make_scalar(DType::Bool, 1), "condition") : nullptr;
  ValueMap constants;
  for (int64_t i = 0; i < *count; ++i) {
    ValueMap map = constants;
    Value* number = rewriter.constant(graph, make_scalar(DType::Int64, static_cast<double>(i)), "iteration");
    map[body->inputs()[0]] = number;
    map[body->inputs()[1]] = go_on;
    for (size_t k = 0; k < carried; ++k) map[body->inputs()[k + 2]] = values[k];
    const std::vector<Value*> results = put_iteration(node, *body, constants, map);
    for (Value* constant : body->initializers()) constants[constant] = map[constant];
    for (size_t k = 0; k < carried; ++k) values[k] = results[k + 1];
    for (size_t k = 0; k < collected.size(); ++k) collected[k].push_back(results[k + 1 + carried]);
  }
  for (Node* made = before ? before->next : graph.first(); made != &node; made = made->next) rewriter.infer(*made);
  // 2. What the last iteration gives, and what all of them gave.
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (output == nullptr) continue;
    Value* result = i < carried ? values[i] : stacked(collected[i - carried], node, rewriter);
    if (result != nullptr) hand_over(output, result, node);
  }
  rewriter.erase_unused(&node);
  return true;
}

}  // namespace tonnx
