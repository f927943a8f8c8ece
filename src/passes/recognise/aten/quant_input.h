// quant_input.h - aten: values that are quantised as they come, by their own range, and weights of 8 bits.
#pragma once
#include "ir/graph.h"

namespace tonnx {

inline const Node* maker(const Value* value) { return value ? value->producer : nullptr; }

/// round(x / step) + zero point, between 0 and 255, less the zero point, where the step is that of the range of x: x.
/// Null for other values.
Value* dequantised(const Value* value, const Value* step);

/// A constant of 8-bit integers as floats, less a number. Its matrix is null for other values.
struct QuantWeight {
  Value* matrix = nullptr;
  int64_t zero_point = 0;
};
QuantWeight find_quant_weight(const Value* value);

}  // namespace tonnx
