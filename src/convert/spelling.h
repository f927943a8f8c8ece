// spelling.h - readies the aten graph of a program, which is as torch.export gives it, for the writer of Python.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Leaves out arguments that are at their default, and what only places tensors; brings graphs inside nodes to the form
/// that the writer knows. Throws Unsupported with the list of all operators that the tables cannot spell.
void require_spelled(Graph& graph);

}  // namespace tonnx
