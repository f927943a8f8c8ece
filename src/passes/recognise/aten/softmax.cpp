// softmax.cpp - aten: recognises a softmax that is written out as exponents and their sum.
#include <algorithm>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// What a node reduces along one dimension of `of`, whose result has that dimension with size 1; -1 for other values.
int64_t reduced_dim(const Value* value, std::string_view op, std::string_view overload, const Value* of) {
  if (value == nullptr || !value->type.shape || !of->type.shape) return -1;
  const Shape wanted = *value->type.shape;
  const Node* node = value->producer;
  if (is_aten(node, "reshape") || is_aten(node, "unsqueeze")) node = operand(*node, "self")->producer;
  if (is_aten(node, "clamp") && number_of(*node, "min") == -HUGE_VAL && !node->find_attribute("max"))
    node = operand(*node, "self")->producer;  // max(m, -inf)
  if (!is_aten(node, op, overload) || operand(*node, "self") != of || node->find_attribute("dtype")) return -1;
  const Attribute* found = node->find_attribute("dim");
  const auto* dims = found ? found->value.get<std::vector<int64_t>>() : nullptr;
  if (dims == nullptr || dims->size() != 1) return -1;
  Shape shape = *of->type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t dim = dims->front() < 0 ? dims->front() + rank : dims->front();
  if (dim < 0 || dim >= rank) return -1;
  shape[static_cast<size_t>(dim)] = Dim(1);
  return wanted == shape ? dim : -1;
}

/// e / sum(e), where e = exp(x - max(x)): softmax(x)
bool replace_by_softmax(Graph& graph, Node& node) {
  if (!is_aten(node, "div", "Tensor")) return false;
  Value *exponents = operand(node, "self"), *total = operand(node, "other");
  const Node* exp = exponents && exponents->uses.size() == 2 ? exponents->producer : nullptr;
  if (!is_aten(exp, "exp") || exp->graph != &graph || total == nullptr) return false;
  const Node* difference = single_use_producer(operand(*exp, "self"), graph);
  if (!is_aten(difference, "sub", "Tensor") || difference->find_attribute("alpha")) return false;
  Value *x = operand(*difference, "self"), *most = operand(*difference, "other");
  if (x == nullptr || most == nullptr || !is_float(x->type.dtype)) return false;
  const int64_t dim = reduced_dim(total, "sum", "dim_IntList", exponents);
  if (dim < 0 || reduced_dim(most, "amax", "", x) != dim) return false;
  Node* softmax = graph.add_node("aten", "softmax", &node);
  softmax->overload = "int";
  softmax->name = node.name;
  softmax->metadata = node.metadata;
  add_operand(*softmax, "self", x);
  softmax->attributes.push_back({"dim", dim, AttrType::None, {}, {}});
  graph.move_output(node.output(0), softmax, 0);
  node.resize_outputs(0);
  return true;
}

}  // namespace

void recognise_aten_softmax(Graph& graph) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_aten_softmax(*subgraph);
    if (replace_by_softmax(graph, *node)) {
      graph.erase(node);
      is_changed = true;
    }
    node = next;
  }
  if (is_changed) remove_unused_nodes(graph);
}

}  // namespace tonnx
