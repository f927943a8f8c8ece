// to_code.h - readies the aten graph of a program, which is as torch.export gives it, for the writer of Python.
#pragma once
#include "ir/graph.h"
#include "ops/frame/allowed_ops.h"

namespace tonnx {

/// Leaves out arguments that are at their default, and what only places tensors; brings graphs inside nodes to the form
/// that the writer knows. Operators without a row are called through torch.ops where the user allows them; throws
/// Unsupported with the list of the others.
void to_code(Graph& graph, const AllowedOps& allowed);

}  // namespace tonnx
