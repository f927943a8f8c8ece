// sympy.h - sizes as .pt2 files write them, which is the text that sympy's srepr gives; parsed, and never evaluated.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ir/dim.h"

namespace tonnx::pt2 {

/// What symbols are called instead.
using SymbolNames = std::map<std::string, std::string, std::less<>>;

/// `Add(Symbol('s0', integer=True), Integer(1))` as a size. Nothing where it is an expression that sizes do not have
/// (a condition, a fraction). Throws InvalidModel where the text is malformed or nested without end.
std::optional<Dim> parse_size(std::string_view text, const SymbolNames& names = {});

}  // namespace tonnx::pt2
