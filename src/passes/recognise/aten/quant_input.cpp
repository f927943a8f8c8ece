// quant_input.cpp - aten: values that are quantised as they come, by their own range, and weights of 8 bits.
#include "passes/recognise/aten/quant_input.h"

#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

constexpr double kSteps = 255;

bool is_clamp(const Node* node, std::optional<double> low, std::optional<double> high) {
  return is_aten(node, "clamp") && number_of(*node, "min") == low && number_of(*node, "max") == high;
}

/// The number of a tensor's two ends that a value is, with zero between them: clamp(aminmax(x)[0], max=0).
const Node* find_end(const Value* value, size_t which) {
  const Node* node = maker(value);
  const bool is_end = which == 0 ? is_clamp(node, std::nullopt, 0.0) : is_clamp(node, 0.0, std::nullopt);
  const Value* end = is_end ? operand(*node, "self") : nullptr;
  return is_aten(maker(end), "aminmax") && end->output_index == which ? end->producer : nullptr;
}

/// What is quantised by a step: (max(x, 0) - min(x, 0)) / 255, and 1 for a tensor of zeros; null for other values.
struct Range {
  Value* of = nullptr;
  const Value* low = nullptr;
};
Range find_range(const Value* step) {
  const Node* filled = maker(step);
  if (!is_aten(filled, "masked_fill", "Scalar") || number_of(*filled, "value") != 1.0) return {};
  const Value* quotient = operand(*filled, "self");
  const Node* is_zero = maker(operand(*filled, "mask"));
  if (!is_aten(is_zero, "eq", "Scalar") || operand(*is_zero, "self") != quotient || number_of(*is_zero, "other") != 0.0)
    return {};
  const Node* division = maker(quotient);
  if (!is_aten(division, "div", "Scalar") || number_of(*division, "other") != kSteps) return {};
  const Node* difference = maker(operand(*division, "self"));
  if (!is_aten(difference, "sub", "Tensor") || difference->find_attribute("alpha")) return {};
  const Value* low = operand(*difference, "other");
  const Node* ends = find_end(operand(*difference, "self"), 1);
  if (ends == nullptr || find_end(low, 0) != ends || ends->inputs().size() != 1 || ends->attributes.size() != 1)
    return {};
  return {operand(*ends, "self"), low};
}

/// round(a / step): a.
const Value* rounded(const Value* value, const Value* step) {
  const Node* node = maker(value);
  const Node* quotient = is_aten(node, "round") ? maker(operand(*node, "self")) : nullptr;
  const bool fits = is_aten(quotient, "div", "Tensor") && operand(*quotient, "other") == step;
  return fits ? operand(*quotient, "self") : nullptr;
}

/// round(-low / step) between 0 and 255.
bool is_zero_point(const Value* value, const Value* low, const Value* step) {
  const Node* node = maker(value);
  if (is_aten(node, "to", "dtype")) node = maker(operand(*node, "self"));
  if (!is_clamp(node, 0, kSteps)) return false;
  const Node* negated = maker(rounded(operand(*node, "self"), step));
  return is_aten(negated, "neg") && operand(*negated, "self") == low;
}

}  // namespace

Value* dequantised(const Value* value, const Value* step) {
  const Range range = find_range(step);
  const Node* difference = maker(value);
  if (range.of == nullptr || !is_aten(difference, "sub", "Tensor") || difference->find_attribute("alpha"))
    return nullptr;
  const Value* zero_point = operand(*difference, "other");
  const Node* clamped = maker(operand(*difference, "self"));
  if (!is_zero_point(zero_point, range.low, step) || !is_clamp(clamped, 0, kSteps)) return nullptr;
  const Node* sum = maker(operand(*clamped, "self"));
  if (!is_aten(sum, "add", "Tensor") || sum->find_attribute("alpha") || operand(*sum, "other") != zero_point)
    return nullptr;
  return rounded(operand(*sum, "self"), step) == range.of ? range.of : nullptr;
}

QuantWeight find_quant_weight(const Value* value) {
  const Node* node = maker(value);
  QuantWeight result;
  const bool is_sum = is_aten(node, "add", "Scalar");
  if ((is_sum || is_aten(node, "sub", "Scalar")) && !node->find_attribute("alpha")) {
    const int64_t* number = find_int(*node, "other");
    if (number == nullptr || *number < -kSteps || *number > kSteps) return {};
    result.zero_point = is_sum ? -*number : *number;
    node = maker(operand(*node, "self"));
  }
  Value* matrix = is_aten(node, "to", "dtype") ? operand(*node, "self") : nullptr;
  const bool fits =
      matrix && matrix->constant && (matrix->constant->dtype == DType::UInt8 || matrix->constant->dtype == DType::Int8);
  if (!fits) return {};
  result.matrix = matrix;
  return result;
}

}  // namespace tonnx
