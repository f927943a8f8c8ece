// quantize.h - scales and zero points, and the rounding that all quantised operators end with.
#pragma once
#include <optional>
#include <string_view>

#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

class OnnxEdit;

/// A scale or a zero point: a number that can stand in the code, or a tensor that broadcasts against what it is for.
struct QuantParam {
  std::optional<double> number;
  Value* tensor = nullptr;
  DType dtype = DType::Undefined;

  bool is(double value) const { return number == value; }
};

/// How a scale is spread over the tensor that it is for: along an axis, one for each element of it or for each block.
struct QuantAxis {
  std::string_view of;  // the input
  int64_t axis = 0;
  int64_t block_size = 0;
};

/// The input as it broadcasts; the number 0 where it is absent. Without an axis its tensor is taken as it is.
QuantParam quant_param(const OnnxNode& n, AtenBuilder& aten, std::string_view name,
                       const std::optional<QuantAxis>& spread = std::nullopt);
/// A constant tensor with one number for each place along that axis of a tensor of that rank.
Value* along_axis(AtenBuilder& aten, Value* vector, int64_t axis, int64_t rank);

// Arithmetic in float32 or float64; nothing happens for 0 and 1.
Value* minus(AtenBuilder& aten, Value* x, const QuantParam& zero_point);
Value* times(AtenBuilder& aten, Value* x, const QuantParam& scale);

struct IntRange {
  int64_t low, high;
};
/// The values of an integer type of at most 16 bits.
IntRange range_of(DType dtype);
/// Rounds to nearest, ties to even, adds the zero point, and holds the result to the range of the integer type.
Value* rounded_to(AtenBuilder& aten, Value* x, const QuantParam& zero_point, DType to);

/// Of QuantizeLinear: makes it one with the operator in front of it, where that works on dequantised numbers.
bool expand_quantize(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
