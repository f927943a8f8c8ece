// linear.cpp - aten: recognises linear layers in matrix products with constants.
#include <algorithm>

#include "ops/frame/emission.h"
#include "ops/frame/python_names.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

bool is_matrix(const Value* value) { return value && value->constant && value->constant->dims.size() == 2; }

/// A constant that a layer is not given: a layer learns, and whole numbers cannot; or both sides of the product are
/// numbers, and none of them is a layer's weight.
bool is_plain_constant(const Value* x, const Value* matrix) {
  if (matrix->constant && !is_float(matrix->constant->dtype)) return true;
  return x->constant && (!matrix->trainable || !python::is_state_key(matrix->name));
}

/// The constant vector that a node adds to `product`, of that many elements; null where it adds something else.
Value* added_bias(const Node& sum, const Value* product, int64_t count) {
  if (!is_aten(sum, "add", "Tensor") || sum.inputs().size() != 2 || sum.attributes.size() != 2) return nullptr;
  Value* other = sum.input(0) == product ? sum.input(1) : sum.input(0);
  const bool fits = other && other->constant && other->constant->dims == std::vector<int64_t>{count};
  return fits ? other : nullptr;
}

/// The constant matrix that a node turns; null where there is none.
Value* transposed_operand(const Node* node) {
  return node && is_matrix(node->input(0)) && swaps_dims(*node) ? node->input(0) : nullptr;
}

/// The value itself, turned.
Value* add_transpose(Graph& graph, Value* weight, Node& before) {
  Node* transpose = graph.add_node("aten", "t", &before);
  transpose->name = before.name;
  add_operand(*transpose, "self", weight);
  return graph.add_output_to(transpose, graph.unique_name(weight->name));
}

/// addmm(b, x, W) and mm(x, W) with constants W, or W.t(), and b -> linear
void replace_product(Graph& graph, Node& node) {
  const bool has_bias = is_aten(node, "addmm");
  if (!has_bias && !is_aten(node, "mm")) return;
  if (node.attributes.size() != (has_bias ? 3U : 2U)) return;
  Value *x = operand(node, has_bias ? "mat1" : "self"), *matrix = operand(node, "mat2");
  if (x == nullptr || matrix == nullptr || is_plain_constant(x, matrix)) return;
  Value* weight = transposed_operand(matrix->producer);
  const bool is_transposed = weight == nullptr;
  if (is_transposed) weight = is_matrix(matrix) ? matrix : nullptr;
  if (weight == nullptr || !is_float(weight->constant->dtype)) return;
  Value* bias = has_bias ? operand(node, "self") : nullptr;
  const std::vector<int64_t> count{weight->constant->dims[is_transposed ? 1 : 0]};
  if (has_bias && (bias == nullptr || !bias->constant || bias->constant->dims != count)) return;
  if (is_transposed) weight = add_transpose(graph, weight, node);
  Node* linear = graph.add_node("aten", "linear", &node);
  linear->name = node.name;
  add_operand(*linear, "input", x);
  add_operand(*linear, "weight", weight);
  if (bias != nullptr) add_operand(*linear, "bias", bias);
  graph.move_output(node.output(0), linear, 0);
  node.resize_outputs(0);
  graph.erase(&node);
}

}  // namespace

void recognise_linear(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_linear(*subgraph);
    // 1. matmul(x, W) with a constant matrix W, x of at least two dimensions -> linear(x, W.t())
    if (is_aten(*node, "matmul") && is_matrix(node->input(1)) && !is_plain_constant(node->input(0), node->input(1)) &&
        node->input(0)->type.rank().value_or(0) >= 2) {
      Value* product = node->output(0);
      Value* weight = node->input(1);
      Node* sum = only_user(product);
      Value* bias = sum ? added_bias(*sum, product, weight->constant->dims[1]) : nullptr;
      Value* transposed = add_transpose(graph, weight, *node);
      // 2. add(linear(x, W.t()), b) with a constant vector b -> linear(x, W.t(), b)
      Node* last = bias ? sum : node;
      Node* linear = graph.add_node("aten", "linear", last);
      linear->name = node->name;
      add_operand(*linear, "input", node->input(0));
      add_operand(*linear, "weight", transposed);
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

void recognise_matrix_layers(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_matrix_layers(*subgraph);
    replace_product(graph, *node);
    node = next;
  }
}

}  // namespace tonnx
