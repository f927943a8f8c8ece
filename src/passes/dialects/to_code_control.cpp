// to_code_control.cpp - rewrites higher-order operators.
#include <algorithm>

#include "base/error.h"
#include "ir/clone.h"
#include "passes/dialects/to_code_steps.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

bool is_higher_order(const Node& node, std::string_view op) {
  return node.domain == "higher_order" && node.op == Symbol(op);
}

GraphPtr graph_of(const Node& node, std::string_view name) {
  const Attribute* attribute = node.find_attribute(name);
  const auto* graph = attribute ? attribute->value.get<GraphPtr>() : nullptr;
  require(graph != nullptr, "the graph '{}' is missing", name);
  return *graph;
}

std::vector<Value*> operands_of(const Node& node, std::string_view name) {
  std::vector<Value*> result;
  const Attribute* attribute = node.find_attribute(name);
  const auto* list = attribute ? attribute->value.get<AttrList>() : nullptr;
  if (list == nullptr) return result;
  for (const AttrValue& item : *list) {
    const auto* operand = item.get<Operand>();
    if (operand == nullptr) fail_unsupported("an argument of a branch or a loop is a number");
    result.push_back(node.input(operand->index));
  }
  return result;
}

ValueMap bound(const Graph& graph, const std::vector<Value*>& values) {
  require(graph.inputs().size() == values.size(), "a graph has {} inputs, and {} values are given",
          graph.inputs().size(), values.size());
  ValueMap map;
  for (size_t i = 0; i < values.size(); ++i) map[graph.inputs()[i]] = values[i];
  return map;
}

/// A graph without inputs, which uses the values themselves.
GraphPtr closed_over(const Graph& graph, Node& owner, const std::vector<Value*>& values) {
  const auto result = std::make_shared<Graph>();
  result->owner = &owner;
  ValueMap map = bound(graph, values);
  clone_nodes(graph, *result, nullptr, map);
  for (Value* output : graph.outputs()) result->add_output(copy_of(output, map));
  return result;
}

/// The graph must give what the node gives.
void require_outputs(const Node& node, size_t count) {
  const auto& outputs = node.outputs();
  const bool all = std::none_of(outputs.begin(), outputs.end(), [](const Value* value) { return value == nullptr; });
  require(all && outputs.size() == count, "a branch or a loop has {} results, and its graph gives {}", outputs.size(),
          count);
}

void take_outputs(Node& from, Node& to) {
  for (size_t i = 0; i < from.outputs().size(); ++i) {
    if (Value* output = from.output(i)) {
      to.resize_outputs(std::max(to.outputs().size(), i + 1));
      from.graph->move_output(output, &to, i);
    }
  }
}

void open_cond(Node& node) {
  Graph& graph = *node.graph;
  const Attribute* pred = node.find_attribute("pred");
  const auto* operand = pred ? pred->value.get<Operand>() : nullptr;
  if (operand == nullptr) fail_unsupported("the condition of a branch is not a tensor");
  const std::vector<Value*> operands = operands_of(node, "operands");
  for (const char* name : {"true_graph", "false_graph"}) require_outputs(node, graph_of(node, name)->outputs().size());
  Node* made = graph.add_node("tonnx", "cond", &node);
  made->name = node.name;
  add_operand(*made, "pred", node.input(operand->index));
  made->set_attribute("then_branch", closed_over(*graph_of(node, "true_graph"), *made, operands));
  made->set_attribute("else_branch", closed_over(*graph_of(node, "false_graph"), *made, operands));
  take_outputs(node, *made);
}

void open_while(Node& node) {
  Graph& graph = *node.graph;
  const GraphPtr condition = graph_of(node, "cond_fn"), body = graph_of(node, "body_fn");
  const std::vector<Value*> carried = operands_of(node, "carried_inputs");
  const std::vector<Value*> additional = operands_of(node, "additional_inputs");
  const auto with_additional = [&](std::vector<Value*> values) {
    values.insert(values.end(), additional.begin(), additional.end());
    return values;
  };
  require(condition->outputs().size() == 1 && body->outputs().size() == carried.size(),
          "the graphs of a loop give {} and {} values", condition->outputs().size(), body->outputs().size());
  require_outputs(node, carried.size());
  ValueMap map = bound(*condition, with_additional(carried));
  clone_nodes(*condition, graph, &node, map);
  Node* made = graph.add_node("tonnx", "loop", &node);
  made->name = node.name;
  add_operand(*made, "keep_on", copy_of(condition->outputs()[0], map));
  AttrList initial;
  for (Value* value : carried) {
    initial.emplace_back(Operand{static_cast<uint32_t>(made->inputs().size())});
    made->add_input(value);
  }
  made->attributes.push_back({"initial", std::move(initial), AttrType::None, {}, {}});
  made->attributes.push_back({"scans", int64_t{0}, AttrType::None, {}, {}});
  const auto inside = std::make_shared<Graph>();
  inside->owner = made;
  inside->add_input(inside->unique_name("i"), Type::number(Type::Kind::Int));
  std::vector<Value*> state;
  for (Value* input : body->inputs()) {
    if (state.size() == carried.size()) break;
    state.push_back(inside->add_input(inside->unique_name(input->name), input->type));
  }
  ValueMap in_body = bound(*body, with_additional(state));
  clone_nodes(*body, *inside, nullptr, in_body);
  std::vector<Value*> next;
  for (Value* output : body->outputs()) next.push_back(copy_of(output, in_body));
  ValueMap at_end = bound(*condition, with_additional(next));
  clone_nodes(*condition, *inside, nullptr, at_end);
  inside->add_output(copy_of(condition->outputs()[0], at_end));
  for (Value* value : next) inside->add_output(value);
  made->set_attribute("body", inside);
  take_outputs(node, *made);
}

}  // namespace

void open_graphs(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) open_graphs(*subgraph);
    const bool is_cond = is_higher_order(*node, "cond"), is_while = is_higher_order(*node, "while_loop");
    if (is_cond) open_cond(*node);
    if (is_while) open_while(*node);
    Node* next = node->next;
    if (is_cond || is_while) graph.erase(node);
    node = next;
  }
}

}  // namespace tonnx
