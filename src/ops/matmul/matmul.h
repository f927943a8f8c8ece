// matmul.h - what products of floats and of quantised integers share.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace tonnx {

/// The shape of a matrix product by numpy's rules; nothing where either shape is unknown. Throws where they do not fit.
std::optional<Shape> matmul_shape(const Shape* a, const Shape* b);

/// The sides of an equation of Einsum: what each input has, and the result.
struct Equation {
  std::vector<std::string> terms;  // '.' stands for the ellipsis
  std::string result;
};
/// Throws InvalidModel where the text is no equation.
Equation parse_equation(std::string text);

}  // namespace tonnx
