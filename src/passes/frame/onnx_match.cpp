// onnx_match.cpp - sums, products, bounds and reductions of ONNX nodes of any opset.
#include "passes/frame/onnx_match.h"

#include <numeric>

#include "passes/frame/op_symbols.h"

namespace tonnx {
namespace {

/// The one number of the two operands, which does not make the result larger than the other operand.
std::optional<WithNumber> with_number(const Node& node) {
  for (const size_t i : {1, 0}) {
    Value* of = node.input(1 - i);
    const auto number = uniform_value(node.input(i));
    if (number && of != nullptr && !of->constant && have_same_type(of, node.output(0))) return WithNumber{of, *number};
  }
  return std::nullopt;
}

}  // namespace

std::optional<WithNumber> scaled_by(const Node* node) {
  if (!is_onnx(node, kMul) && !is_onnx(node, kDiv)) return std::nullopt;
  auto found = with_number(*node);
  if (!found || is_onnx(node, kMul)) return found;
  if (found->of != node->input(0) || found->number == 0) return std::nullopt;
  found->number = 1 / found->number;
  return found;
}

std::optional<WithNumber> shifted_by(const Node* node) {
  if (!is_onnx(node, kAdd) && !is_onnx(node, kSub)) return std::nullopt;
  auto found = with_number(*node);
  if (!found || is_onnx(node, kAdd)) return found;
  if (found->of != node->input(0)) return std::nullopt;
  found->number = -found->number;
  return found;
}

std::optional<WithNumber> as_scaled(const Value* value) {
  return value != nullptr && only_user(value) ? scaled_by(value->producer) : std::nullopt;
}

WithNumber as_product(Value* value) {
  const auto found = as_scaled(value);
  return found ? *found : WithNumber{value, 1};
}

std::optional<WithNumber> as_shifted(const Value* value) {
  return value != nullptr && only_user(value) ? shifted_by(value->producer) : std::nullopt;
}

Value* as_square(const Value* value) {
  if (const Node* node = made_by(value, kMul)) return node->input(0) == node->input(1) ? node->input(0) : nullptr;
  const Node* node = made_by(value, kPow);
  const bool is_square = node && uniform_value(node->input(1)) == 2.0 && have_same_type(node->input(0), value);
  return is_square ? node->input(0) : nullptr;
}

bool is_scaled(const Value* value, const Value* of, double scale) {
  if (value == of) return scale == 1;
  const auto found = as_scaled(value);
  return found && found->of == of && is_near(found->number, scale, of->type.dtype);
}

std::optional<std::pair<Value*, Bounds>> as_clipped(const Value* value) {
  const Node* node = made_by(value, kClip);
  if (node == nullptr) return std::nullopt;
  const auto low = float_of(*node, "min"), high = float_of(*node, "max");
  if (!low || !high || node->input(0) == nullptr) return std::nullopt;
  return std::pair{node->input(0), Bounds{*low, *high}};
}

std::optional<Reduced> as_reduced(const Node* node, Symbol op) {
  if (!is_onnx(node, op) || node->input(0) == nullptr) return std::nullopt;
  const auto rank = node->input(0)->type.rank();
  if (!rank) return std::nullopt;
  Reduced result{node->input(0), {}, int_of(*node, "keepdims").value_or(1) != 0};
  if (has(*node, "axes")) {
    const auto axes = ints_of(*node, "axes");
    const auto sorted = axes ? axes_from_front(*axes, *rank) : std::nullopt;
    if (!sorted || sorted->empty()) return std::nullopt;
    result.axes = *sorted;
  } else {
    if (int_of(*node, "noop_with_empty_axes").value_or(0) != 0) return std::nullopt;
    result.axes.resize(static_cast<size_t>(*rank));
    std::iota(result.axes.begin(), result.axes.end(), 0);
  }
  return result;
}

}  // namespace tonnx
