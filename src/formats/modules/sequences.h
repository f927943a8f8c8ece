// sequences.h - numbered members of a model that are called one behind the other.
#pragma once
#include <string>

#include "formats/modules/outline.h"

namespace tonnx {

/// Members of a list that give each other their only value become one call of an nn.Sequential; those that take more
/// along become one loop.
void find_sequences(ModulePart& part);

/// A loop over the members of a list. Its inputs are the arguments of the first call; attribute `carried` says for each
/// output which of them it is in the next.
bool is_call_each(const Node& node);

}  // namespace tonnx
