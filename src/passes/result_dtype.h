// result_dtype.h - the element type that an elementwise aten operator gives, by PyTorch's rules of promotion.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// The type of both together, as torch.promote_types.
DType promoted(DType a, DType b);

/// What the node, of a functional operator, gives; `otherwise` for operators that keep a type, or ask for equal ones.
DType result_dtype(const Node& node, DType otherwise);

}  // namespace tonnx
