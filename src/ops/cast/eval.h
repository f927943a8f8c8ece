// eval.h - how numbers become those of the small float types, for Cast and for quantisation.
#pragma once
#include <optional>

#include "ir/tensor.h"
#include "ops/frame/eval.h"

namespace tonnx {

/// The bits of a number in a float type of at most 8 bits, but for Float8E8M0.
uint64_t small_float_bits(DType dtype, double value, bool saturate);

Results eval_cast(const NodeView& n);
Results eval_bit_cast(const NodeView& n);

}  // namespace tonnx
