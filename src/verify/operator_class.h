// operator_class.h - what operators of either vocabulary, and functions of PyTorch, have in common for the judge.
#pragma once
#include <string>
#include <string_view>

namespace tonnx::judge {

/// Operators that do the same have the same class, whatever they are called: `Conv`, `conv2d`, `convolution`.
std::string operator_class(std::string_view op);
/// Whether each element that an operator of the class gives is the sum of many numbers.
bool accumulates(std::string_view operator_class);
/// Whether an operator says that numbers are stored and computed with as integers.
bool quantises(std::string_view op);
/// Whether an operator rounds to steps.
bool rounds_to_steps(std::string_view op);

}  // namespace tonnx::judge
