// result_dtype.h - which aten operators are elementwise, and the element type that they give, by PyTorch's rules.
#pragma once
#include <span>
#include <string_view>

#include "ir/graph.h"

namespace tonnx {

/// The type of both together, as torch.promote_types.
DType promoted(DType a, DType b);

/// The type of all of these arguments together: tensors, then tensors of rank 0, then plain numbers.
DType joint_dtype(const Node& node, std::span<const std::string_view> arguments);

/// The same of two tensors.
DType joint_dtype(const Type& a, const Type& b);

/// What the node, of a functional operator, gives; `otherwise` for operators that keep a type, or ask for equal ones.
DType result_dtype(const Node& node, DType otherwise);

/// Whether each element of the result depends on one of each input, and the result lies in memory as they do.
bool is_elementwise(const Node& node);

}  // namespace tonnx
