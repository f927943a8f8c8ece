// weights.h - weights that a few nodes put together from constants, such as gates in another order.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// The tensor that a value always is: a constant, or what Slice, Split, Concat and changes of the shape make of constants.
/// Null where it is something else.
TensorPtr find_weight(const Value* value);

}  // namespace tonnx
