// transposes.h - orders of axes, and the Transposes that have them.
#pragma once
#include "passes/rewriter.h"

namespace tonnx {

/// Axis i of what a Transpose gives is axis perm[i] of what it is given.
using Perm = std::vector<int64_t>;

/// The order that a Transpose makes, as numbers of all axes; nothing for other nodes, and where it is not known.
std::optional<Perm> perm_of(const Node& node);
/// First the one, then the other.
Perm combined(const Perm& first, const Perm& then);
Perm inverse_of(const Perm& perm);
bool is_identity(const Perm& perm);

}  // namespace tonnx
