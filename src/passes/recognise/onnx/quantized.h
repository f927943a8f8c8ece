// quantized.h - what passes find of quantised numbers that are computed with as floats.
#pragma once
#include "passes/frame/onnx_match.h"

namespace tonnx {

/// Numbers of 8 bits, less their zero point, as floats: one number for all, known or not.
struct Centered {
  Value* x;
  Value* zero_point = nullptr;  // null where it is a known number
  double number = 0;

  /// The zero point as an input of a node; null where it is 0 and need not be said.
  Value* input(Rewriter& rewriter, Graph& graph, bool is_needed = false) const;
};
std::optional<Centered> as_centered(const Value* value);

/// Makes the users of floats use integers that are the same numbers: those that want them as integers as they are,
/// others behind a Cast, which stands before that node.
bool become_integers(Value* floats, Value* integers, Rewriter& rewriter, Node& before);

/// One number, or one for each place along an axis, of a constant that is spread over a tensor of that rank.
struct Spread {
  std::vector<double> numbers;
  std::optional<int64_t> axis;  // from the front; nothing where there is one number
};
std::optional<Spread> as_spread(const Value* constant, int64_t rank);

/// A constant of the graph with these numbers: without dimensions where there is one for all.
Value* spread_constant(Rewriter& rewriter, Graph& graph, const Spread& spread, std::string_view hint);
Value* number_constant(Rewriter& rewriter, Graph& graph, DType dtype, double number, std::string_view hint);

}  // namespace tonnx
