// spelling.h - readies the aten graph of a program, which is as torch.export gives it, for the writer of Python.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Leaves out arguments that are at their default, and what only places tensors; brings graphs inside nodes to the form
/// that the writer knows. Operators without a spelling are called through torch.ops; throws Unsupported with the list
/// of those that cannot be.
void require_spelled(Graph& graph);

}  // namespace tonnx
