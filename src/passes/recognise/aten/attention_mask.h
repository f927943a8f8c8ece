// attention_mask.h - aten: what is known of a mask in front of a softmax.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Whether the first key is open to every query, for a mask of bools that say what is allowed (or what is forbidden).
bool opens_first_key(const Value* mask, bool says_allowed);

/// Whether some row of a mask that is added may be -inf as a whole, as far as literals and constants tell.
bool may_forbid_rows(const Value* mask);

}  // namespace tonnx
