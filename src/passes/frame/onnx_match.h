// onnx_match.h - arithmetic of ONNX nodes, read as algebra: what a value is of others, where nobody else needs it.
#pragma once
#include <cmath>
#include <optional>
#include <utility>

#include "passes/frame/rewriter.h"

namespace tonnx {

/// The node of that operator that makes a value for one user only; null for other values.
inline Node* made_by(const Value* value, Symbol op) {
  return value != nullptr && only_user(value) != nullptr ? producer_of(value, op) : nullptr;
}

/// How far a constant that was rounded to a type may be from the number that is meant.
inline double tolerance_of(DType dtype) {
  if (dtype == DType::Float16) return 2e-3;
  return dtype == DType::BFloat16 ? 1e-2 : 1e-6;
}
inline bool is_near(double number, double meant, DType dtype) {
  return std::abs(number - meant) <= tolerance_of(dtype) * std::abs(meant);
}
/// Whether all elements of a constant are that number.
inline bool is_near(const Value* value, double meant) {
  const auto number = uniform_value(value);
  return number && is_near(*number, meant, value->type.dtype);
}

/// A value and a number that is applied to it.
struct WithNumber {
  Value* of;
  double number;
};

/// value = of * number, as a product or a quotient.
std::optional<WithNumber> as_scaled(const Value* value);
/// value = of * number; a value that is no such product is itself times 1.
WithNumber as_product(Value* value);
/// value = of + number, as a sum or a difference.
std::optional<WithNumber> as_shifted(const Value* value);
/// The same for values that others use too.
std::optional<WithNumber> scaled_by(const Node* node);
std::optional<WithNumber> shifted_by(const Node* node);

/// The operand of value = op(operand), for one user; null for other values.
inline Value* operand_of(const Value* value, Symbol op) {
  const Node* node = made_by(value, op);
  return node ? node->input(0) : nullptr;
}
/// `a` of value = a * a, or a to the second power.
Value* as_square(const Value* value);
/// Whether value = scale * of; 1 and no product at all is the same.
bool is_scaled(const Value* value, const Value* of, double scale);

/// A number that something is clipped between.
struct Bounds {
  double low, high;
};
/// value = Clip(of, low, high), with both bounds constant.
std::optional<std::pair<Value*, Bounds>> as_clipped(const Value* value);

/// What a reduction over constant axes works on, with the axes from the front, sorted.
struct Reduced {
  Value* of;
  std::vector<int64_t> axes;
  bool keeps_dims;
};
std::optional<Reduced> as_reduced(const Node* node, Symbol op);

}  // namespace tonnx
