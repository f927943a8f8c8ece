// result_dtype.h - which aten operators are elementwise, and the element type that they give, by PyTorch's rules.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// The type of both together, as torch.promote_types.
DType promoted(DType a, DType b);

/// What the node, of a functional operator, gives; `otherwise` for operators that keep a type, or ask for equal ones.
DType result_dtype(const Node& node, DType otherwise);

/// Whether each element of the result depends on one of each input, and the result lies in memory as they do.
bool is_elementwise(const Node& node);

}  // namespace tonnx
