// to_code.h - readies the aten graph of a program, which is as torch.export gives it, for the writer of Python.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/allowed_ops.h"

namespace tonnx {

/// An operator of a program that cannot be written as code.
struct UnwrittenOp {
  std::string target;               // aten::add.Tensor, or library::name
  std::vector<std::string> places;  // of the modules that call it, one for each call
  bool can_be_allowed = false;      // it is not known, and the user may allow it
};
/// Does what to_code() does, and gives the operators that it would refuse.
std::vector<UnwrittenOp> find_unwritten(Graph& graph, const AllowedOps& allowed);

/// Leaves out arguments that are at their default, and what only places tensors; brings graphs inside nodes to the form
/// that the writer knows. Operators without a row are called through torch.ops where the user allows them; throws
/// Unsupported with the list of the others.
void to_code(Graph& graph, const AllowedOps& allowed);

}  // namespace tonnx
