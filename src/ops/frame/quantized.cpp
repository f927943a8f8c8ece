// quantized.cpp - what a DequantizeLinear is given.
#include "ops/frame/quantized.h"

namespace tonnx {

Quantized dequantized_from(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  if (node == nullptr || !node->domain.empty() || node->op.view() != "DequantizeLinear" || node->input(0) == nullptr)
    return {};
  const Attribute* block = node->find_attribute("block_size");
  const auto* size = block ? block->value.get<int64_t>() : nullptr;
  const bool is_plain = size == nullptr || *size == 0;
  const Value *scale = node->input(1), *zero_point = node->input(2);
  const bool is_constant = scale && scale->constant && scale->constant->dtype == DType::Float32 &&
                           scale->constant->dims.size() <= 1 && (zero_point == nullptr || zero_point->constant);
  if (!is_plain || !is_constant) return {};
  const Attribute* axis = node->find_attribute("axis");
  const auto* number = axis ? axis->value.get<int64_t>() : nullptr;
  return {node->input(0), node->input(1), node->input(2), number ? *number : 1};
}

}  // namespace tonnx
