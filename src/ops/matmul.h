// matmul.h - what products of floats and of quantised integers share.
#pragma once
#include <optional>

#include "ir/dim.h"

namespace tonnx {

/// The shape of a matrix product by numpy's rules; nothing where either shape is unknown. Throws where they do not fit.
std::optional<Shape> matmul_shape(const Shape* a, const Shape* b);

}  // namespace tonnx
