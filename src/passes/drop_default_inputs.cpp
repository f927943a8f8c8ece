// drop_default_inputs.cpp - inputs that say what is so without them.
#include "passes/simplify_passes.h"

namespace tonnx {
namespace {

const Symbol kRecurrent[] = {Symbol("LSTM"), Symbol("GRU"), Symbol("RNN")};
const Symbol kMoves[] = {Symbol("Expand"),  Symbol("Slice"),   Symbol("Unsqueeze"), Symbol("Squeeze"),
                         Symbol("Reshape"), Symbol("Flatten"), Symbol("Transpose"), Symbol("Identity"),
                         Symbol("Tile"),    Symbol("Gather")};
const Symbol kConstantOfShape("ConstantOfShape");

bool is_among(const Node& node, std::span<const Symbol> ops) {
  for (const Symbol op : ops) {
    if (is_onnx(node, op)) return true;
  }
  return false;
}

/// Whether all elements are zero, whatever the sizes will be.
bool is_zero(const Value* value) {
  constexpr int kFar = 16;
  for (int i = 0; i < kFar && value != nullptr; ++i) {
    if (value->constant) return uniform_value(value) == 0.0;
    const Node* producer = value->producer;
    if (producer == nullptr) return false;
    if (is_onnx(producer, kConstantOfShape)) {
      const Attribute* given = producer->find_attribute("value");
      const auto* tensor = given ? given->value.get<TensorPtr>() : nullptr;
      return given == nullptr || (tensor != nullptr && (*tensor)->count() == 1 && element_as_double(**tensor, 0) == 0);
    }
    if (!is_among(*producer, kMoves)) return false;
    value = producer->input(0);
  }
  return false;
}

}  // namespace

bool drop_default_inputs(Node& node, Rewriter& rewriter) {
  // 1. The first state of a recurrent layer, its bias and its peepholes are zero where they are not given.
  if (!is_among(node, kRecurrent)) return false;
  bool is_changed = false;
  for (const size_t i : {3, 5, 6, 7}) {
    if (node.input(i) == nullptr || !is_zero(node.input(i))) continue;
    rewriter.set_input(node, i, nullptr);
    is_changed = true;
  }
  size_t count = node.inputs().size();
  while (count > 3 && node.input(count - 1) == nullptr) --count;
  if (is_changed) node.resize_inputs(count);
  return is_changed;
}

}  // namespace tonnx
