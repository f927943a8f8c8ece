// transposed.h - a matrix with rows and columns swapped, handed over in pieces.
#pragma once
#include <functional>
#include <string_view>

#include "ir/tensor.h"

namespace tonnx {

/// The bytes of the transposed matrix, some of its rows at a time.
void write_transposed(const Tensor& matrix, const std::function<void(std::string_view)>& sink);

}  // namespace tonnx
