// sizes.cpp - aten: sizes are asked of the tensors that they come from.
#include <algorithm>
#include <unordered_map>

#include "ops/frame/op_def.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// Whether a node gives as many elements along a dimension as an input of the same rank has, where their types say so.
bool keeps_sizes(const Node& node) {
  if (node.domain != "aten") return false;
  if (is_aten(node, "mean", "dim") || is_aten(node, "sum", "dim_IntList") || is_aten(node, "softmax", "int") ||
      is_aten(node, "layer_norm") || is_aten(node, "rms_norm") || is_aten(node, "matmul") || is_aten(node, "linear"))
    return true;
  const AtenOpEntry* entry = find_aten_op(node);
  return entry && entry->op->elementwise != Elementwise::No;
}

constexpr int kMostLooks = 16;  // so many nodes, or users of a value, are looked at for one size

/// Where each node of a graph stands in it.
using Places = std::unordered_map<const Node*, size_t>;

/// Whether a value is there for more than a node or two. What is made on the way from one operator of ONNX to another
/// has no type, and quantised numbers may become floats again: neither is a value that a person would name.
bool is_needed(const Value& value) {
  const bool is_byte = value.type.dtype == DType::UInt8 || value.type.dtype == DType::Int8;
  return value.uses.size() > 2 && value.type.shape && !is_byte;
}

/// Whether a value is there still when a node is done.
bool outlives(const Value& value, const Node& node, const Places& places) {
  const size_t count = std::min<size_t>(value.uses.size(), kMostLooks);
  return std::any_of(value.uses.begin(), value.uses.begin() + static_cast<std::ptrdiff_t>(count), [&](const Use& use) {
    const auto place = places.find(use.user);
    return place != places.end() && place->second > places.at(&node);
  });
}

/// The nearest tensor above a value that is known to have this size at that place, of as many.
Value* find_above(const Value& value, const Shape& sizes, size_t dim, int& steps) {
  if (value.producer == nullptr || !keeps_sizes(*value.producer)) return nullptr;
  for (Value* input : value.producer->inputs()) {
    if (--steps < 0) return nullptr;
    if (input == nullptr || input->constant || !input->type.is_tensor()) continue;
    const auto& shape = input->type.shape;
    if (shape && shape->size() == sizes.size() && (*shape)[dim] == sizes[dim]) return input;
    Value* above = shape ? nullptr : find_above(*input, sizes, dim, steps);
    if (above != nullptr) return above;
  }
  return nullptr;
}

/// The tensor that has the size of a value along a dimension, where the value would be needed for nothing else but one
/// more node, or the tensor is kept for longer anyway.
Value* source_of_size(Value* value, size_t dim, const Node& question, const Places& places) {
  int steps = kMostLooks;
  Value* source = value;
  bool is_past_needed = false;
  while (Value* above = find_above(*value, *value->type.shape, dim, steps)) {
    is_past_needed = is_past_needed || is_needed(*value);
    value = above;
    if (is_past_needed && !outlives(*value, question, places)) continue;
    source = value;
    is_past_needed = false;
  }
  return source;
}

}  // namespace

void find_sources_of_sizes(Graph& graph) {
  Places places;
  for (const Node& node : graph) places.emplace(&node, places.size());
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) find_sources_of_sizes(*subgraph);
    if (!is_aten(node, "sym_size", "int") || node->inputs().size() != 1) continue;
    Value* value = node->input(0);
    const int64_t* dim = find_int(*node, "dim");
    if (value == nullptr || !value->type.shape || !dim || *dim < 0 ||
        *dim >= static_cast<int64_t>(value->type.shape->size()))
      continue;
    Value* source = source_of_size(value, static_cast<size_t>(*dim), *node, places);
    if (source != value) node->set_input(0, source);
  }
}

}  // namespace tonnx
