// expression_text.h - symbolic expressions of a .pt2 file as texts that are safe to be evaluated: parsed, and printed
// anew.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tonnx::pt2 {

/// PyTorch evaluates these texts as Python. What comes back is made of numbers, symbols and the functions that sizes
/// and conditions are made of, and of nothing else; and evaluating it takes little time. Throws InvalidModel,
/// Unsupported.
std::string vetted_expression(std::string_view text);

/// A condition on the inputs, `L['x'].size()[0] % 2 == 0`, which PyTorch makes code of: comparisons of sizes, and
/// nothing else. Nothing for any other text.
std::optional<std::string> vetted_guard(std::string_view text);

/// `s0`, `u12`, `batch`: a name that a symbol may have.
bool is_symbol_name(std::string_view name);

}  // namespace tonnx::pt2
