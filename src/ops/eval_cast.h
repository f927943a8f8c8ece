// eval_cast.h - how numbers become those of the small float types, for Cast and for quantisation.
#pragma once
#include <optional>

#include "ir/tensor.h"

namespace tonnx {

/// The bits of a number in a float type of at most 8 bits, but for Float8E8M0.
uint64_t small_float_bits(DType dtype, double value, bool saturate);

}  // namespace tonnx
