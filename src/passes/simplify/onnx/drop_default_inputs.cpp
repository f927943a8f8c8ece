// drop_default_inputs.cpp - optional inputs that are what is assumed without them.
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

/// Whether all elements are 0, as far as few nodes tell.
bool is_zero(const Value* value) {
  constexpr int kMostNodes = 16;
  for (int i = 0; i < kMostNodes && value != nullptr; ++i) {
    if (value->constant) return uniform_value(value) == 0.0;
    const Node* node = value->producer;
    if (node == nullptr) return false;
    if (is_onnx(node, kConstantOfShape)) {
      const Attribute* number = node->find_attribute("value");
      if (number == nullptr) return true;
      const auto* tensor = number->value.get<TensorPtr>();
      const auto numbers = tensor && *tensor ? floats_of(**tensor) : std::nullopt;
      return numbers && numbers->size() == 1 && (*numbers)[0] == 0;
    }
    if (!has_trait(*node, kMoves)) return false;
    value = node->input(0);
  }
  return false;
}

}  // namespace

/// States of LSTM, GRU and RNN that begin with 0, and what is 0 and added to what Conv, Gemm and they give
bool drop_default_inputs(Node& node, Rewriter& rewriter) {
  const OnnxOpEntry* entry = node.domain.empty() ? find_onnx_op({}, node.op.view()) : nullptr;
  if (entry == nullptr || rewriter.opset() < entry->op->zeros.since || has_references(node)) return false;
  const unsigned zeros = entry->op->zeros.inputs;
  bool is_changed = false;
  for (size_t i = 0; i < node.inputs().size() && zeros >> i != 0; ++i) {
    if ((zeros >> i & 1) == 0 || node.input(i) == nullptr || !is_zero(node.input(i))) continue;
    rewriter.set_input(node, i, nullptr);
    is_changed = true;
  }
  size_t count = node.inputs().size();
  while (is_changed && count > 0 && node.input(count - 1) == nullptr) --count;
  if (count < node.inputs().size() && is_changed) node.resize_inputs(count);
  return is_changed;
}

}  // namespace tonnx
