// inverse.h - what an input of an elementwise operator has to be, for its result to be as it is wanted.
#pragma once
#include <optional>
#include <vector>

#include "ir/origins.h"

namespace tonnx {

/// The numbers that the input of that place has to have, given the other inputs; those that do not matter stay as they
/// are. Nothing where the operator has no inverse, the input has other sizes than the result, or no number will do.
std::optional<std::vector<double>> solve_for_input(const Origin& origin, size_t input, const Tensors& inputs,
                                                   const Tensor& wanted);

}  // namespace tonnx
