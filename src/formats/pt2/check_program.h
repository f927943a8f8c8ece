// check_program.h - whether a program is one that PyTorch could have made.
#pragma once
#include "ir/graph.h"

namespace tonnx::pt2 {

/// Throws InvalidModel where a call does not fit the schema of its operator, a tensor has no complete type, or the
/// graphs inside a node do not take and give what the node does. Everything behind the reader relies on it.
void check_program(const Graph& graph);

}  // namespace tonnx::pt2
