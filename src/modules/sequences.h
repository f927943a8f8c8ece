// sequences.h - numbered members of a model that are called one behind the other.
#pragma once
#include <string>

#include "modules/outline.h"

namespace tonnx {

/// Members of a list that give each other their only value become one call of an nn.Sequential; those that take more
/// along become one loop.
void find_sequences(ModulePart& part);

/// The members of a part that does nothing but call them one behind the other, with the layers without weights between
/// them; empty for other parts. A member may be there for the one that it has, which is called then.
std::vector<Member> chain_of(const ModulePart& part);

/// Whether a part does nothing but call all its members one behind the other, in a loop.
bool calls_children(const ModulePart& part);

}  // namespace tonnx
