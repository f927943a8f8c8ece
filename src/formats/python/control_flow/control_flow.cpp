// control_flow.cpp - looks into branches and loops.
#include "formats/python/control_flow/control_flow.h"

#include <algorithm>
#include <unordered_set>

namespace tonnx::python {

bool is_tonnx(const Node& node, std::string_view op) { return node.domain == "tonnx" && node.op == Symbol(op); }
bool is_control(const Node& node) { return is_tonnx(node, "cond") || is_tonnx(node, "loop"); }
const Graph& graph_of(const Node& node, std::string_view name) {
  return **node.find_attribute(name)->value.get<GraphPtr>();
}

namespace {

void add_captured(const Graph& graph, std::unordered_set<const Graph*>& inside, std::vector<const Value*>& result) {
  inside.insert(&graph);
  const auto add = [&](const Value* value) {
    if (value && !value->constant && !inside.contains(value->graph)) result.push_back(value);
  };
  for (const Node& node : graph) {
    for (const Value* input : node.inputs()) add(input);
    for (const GraphPtr& subgraph : subgraphs_of(node)) add_captured(*subgraph, inside, result);
  }
  for (const Value* output : graph.outputs()) add(output);
}

}  // namespace

std::vector<const Value*> captured_by(const Node& node) {
  std::vector<const Value*> result;
  std::unordered_set<const Graph*> inside;
  for (const GraphPtr& subgraph : subgraphs_of(node)) add_captured(*subgraph, inside, result);
  return result;
}

bool can_be_cond(const Node& node) {
  if (!node.input(0)->type.is_tensor()) return false;
  const Graph &a = graph_of(node, "then_branch"), &b = graph_of(node, "else_branch");
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Type &one = a.outputs()[i]->type, &other = b.outputs()[i]->type;
    if (!one.is_tensor() || one.dtype == DType::Undefined || one.dtype != other.dtype) return false;
    if (one.shape && other.shape && one.shape->size() != other.shape->size()) return false;
  }
  return !node.outputs().empty();
}

bool can_be_while(const Node& node, const LoopParts& parts) {
  const Attribute* count = node.find_attribute("count");
  const auto* operand = count ? count->value.get<Operand>() : nullptr;
  const Node* counted = operand ? node.input(operand->index)->producer : nullptr;
  const bool is_data = counted != nullptr && (is_tonnx(*counted, "item") || is_tonnx(*counted, "count_if"));
  if (parts.scans != 0 || (parts.keep_on == nullptr && !is_data)) return false;
  const auto agree = [](const Value* a, const Value* b) {
    return a->type.is_tensor() && a->type.dtype != DType::Undefined && a->type.shape && a->type == b->type;
  };
  const size_t first = parts.keep_on != nullptr ? 1 : 0;
  if (first != 0 && !agree(parts.keep_on, parts.body.outputs()[0])) return false;
  for (size_t i = 0; i < parts.initial.size(); ++i) {
    const Value* initial = node.input(parts.initial[i].get<Operand>()->index);
    if (!agree(initial, parts.body.outputs()[first + i]) || !agree(initial, parts.body.inputs()[i + 1])) return false;
  }
  const auto& uses = parts.body.inputs()[0]->uses;
  return std::all_of(uses.begin(), uses.end(), [](const Use& use) {
    return use.user != nullptr && (is_tonnx(*use.user, "int_scalar") || use.user->op == "select");
  });
}

}  // namespace tonnx::python
