// to_code_numbers.h - constants of one number that PyTorch made a tensor of are numbers again.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// `x * self.lifted_tensor_0` becomes `x * 2.5`, and `self.lifted_tensor_0.expand(2, 3)` becomes `torch.full`, where
/// the result is of the same type.
void make_literals(Graph& graph);

}  // namespace tonnx
