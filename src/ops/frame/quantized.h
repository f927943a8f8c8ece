// quantized.h - a tensor as the DequantizeLinear has it that gives its numbers, or as a QuantizeLinear gives it.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Null for none.
struct Quantized {
  Value* x = nullptr;
  Value* scale = nullptr;
  Value* zero_point = nullptr;  // may be absent
  int64_t axis = 1;

  explicit operator bool() const { return x != nullptr; }
  DType dtype() const { return x->type.dtype; }
  bool is_per_tensor() const { return scale != nullptr && scale->constant && scale->constant->count() == 1; }
};

/// What is dequantised into the value, with constant scales; nothing where it comes from elsewhere.
Quantized dequantized_from(const Value* value);

}  // namespace tonnx
