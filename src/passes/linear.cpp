// linear.cpp - aten: recognises linear layers in matrix products with constants.
#include <algorithm>

#include "ops/emission.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

bool is_op(const Node& node, std::string_view op, std::string_view overload = "") {
  return node.domain == Symbol("aten") && node.op == Symbol(op) && node.overload == Symbol(overload);
}

void add_operand(Node& node, std::string_view name, Value* value) {
  const auto index = static_cast<uint32_t>(node.inputs().size());
  node.add_input(value);
  node.attributes.push_back({std::string(name), Operand{index}, AttrType::None, {}, {}});
}

bool is_matrix(const Value* value) { return value && value->constant && value->constant->dims.size() == 2; }

/// The constant vector that a node adds to `product`, of that many elements; null where it adds something else.
Value* added_bias(const Node& sum, const Value* product, int64_t count) {
  if (!is_op(sum, "add", "Tensor") || sum.inputs().size() != 2 || sum.attributes.size() != 2) return nullptr;
  Value* other = sum.input(0) == product ? sum.input(1) : sum.input(0);
  const bool fits = other && other->constant && other->constant->dims == std::vector<int64_t>{count};
  return fits ? other : nullptr;
}

}  // namespace

void recognise_linear(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_linear(*subgraph);
    // 1. matmul(x, W) with a constant matrix W, x of at least two dimensions -> linear(x, W.t())
    if (is_op(*node, "matmul") && is_matrix(node->input(1)) && !node->input(0)->constant &&
        node->input(0)->type.rank().value_or(0) >= 2) {
      Value* product = node->output(0);
      Value* weight = node->input(1);
      Node* sum = product->uses.size() == 1 ? product->uses[0].user : nullptr;
      if (sum != nullptr && sum->graph != &graph) sum = nullptr;
      Value* bias = sum ? added_bias(*sum, product, weight->constant->dims[1]) : nullptr;
      Node* transpose = graph.add_node("aten", "t", node);
      transpose->name = node->name;
      add_operand(*transpose, "self", weight);
      Value* turned = graph.add_output_to(transpose, graph.unique_name(weight->name));
      // 2. add(linear(x, W.t()), b) with a constant vector b -> linear(x, W.t(), b)
      Node* last = bias ? sum : node;
      Node* linear = graph.add_node("aten", "linear", last);
      linear->name = node->name;
      add_operand(*linear, "input", node->input(0));
      add_operand(*linear, "weight", turned);
      if (bias) add_operand(*linear, "bias", bias);
      Value* result = last->output(0);
      graph.move_output(result, linear, 0);
      last->resize_outputs(0);
      if (next == last) next = last->next;
      graph.erase(last);
      if (last != node) graph.erase(node);
    }
    node = next;
  }
}

}  // namespace tonnx
