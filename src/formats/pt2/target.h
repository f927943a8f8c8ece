// target.h - what a node of a program calls, and what its arguments are called: names, and none of the reader's own
// making.
#pragma once
#include <string>
#include <string_view>

#include "formats/pt2/program.h"
#include "ir/graph.h"

namespace tonnx::pt2 {

/// Sets the node's operator: `torch.ops.aten.add.Tensor`, `_operator.mul`, `torch.sym_max`,
/// `torch.ops.higher_order.cond`. Throws InvalidModel where the target is no name of an operator that a program can
/// have.
void set_target(Node& node, std::string_view target, Origin origin);

/// The name of argument number `position`, which the file calls `given`. Throws InvalidModel where the operator does
/// not have it, or, for an operator that is not known, where it is no name.
std::string argument_name(const Node& node, std::string_view given, size_t position);

}  // namespace tonnx::pt2
