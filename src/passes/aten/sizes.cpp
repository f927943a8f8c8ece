// sizes.cpp - aten: sizes are asked of the tensors that they come from.
#include "ops/frame/op_def.h"
#include "passes/aten/match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// Whether a node gives as many elements along a dimension as an input of the same rank has, where their types say so.
bool keeps_sizes(const Node& node) {
  if (node.domain != Symbol("aten")) return false;
  if (is_aten(node, "mean", "dim") || is_aten(node, "sum", "dim_IntList") || is_aten(node, "softmax", "int") ||
      is_aten(node, "layer_norm") || is_aten(node, "matmul") || is_aten(node, "linear"))
    return true;
  const AtenOpEntry* entry = find_aten_op(node);
  return entry && entry->op->elementwise != Elementwise::No;
}

/// The tensor that has the size of a value along a dimension, where the value would be needed for nothing else but one
/// more node.
Value* source_of_size(Value* value, size_t dim) {
  while (value->producer != nullptr && value->uses.size() <= 2 && keeps_sizes(*value->producer)) {
    Value* source = nullptr;
    for (Value* input : value->producer->inputs()) {
      const bool fits = input && !input->constant && input->type.is_tensor() && input->type.shape &&
                        input->type.shape->size() == value->type.shape->size() &&
                        (*input->type.shape)[dim] == (*value->type.shape)[dim];
      if (fits && source == nullptr) source = input;
    }
    if (source == nullptr) return value;
    value = source;
  }
  return value;
}

}  // namespace

void find_sources_of_sizes(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) find_sources_of_sizes(*subgraph);
    if (!is_aten(node, "sym_size", "int") || node->inputs().size() != 1) continue;
    Value* value = node->input(0);
    const int64_t* dim = find_int(*node, "dim");
    if (value == nullptr || !value->type.shape || !dim || *dim < 0 ||
        *dim >= static_cast<int64_t>(value->type.shape->size()))
      continue;
    Value* source = source_of_size(value, static_cast<size_t>(*dim));
    if (source != value) node->set_input(0, source);
  }
}

}  // namespace tonnx
