// layout.h - breaks long lines the way Python's formatters do, so that their check passes.
#pragma once
#include <string>
#include <string_view>

namespace tonnx::python {

inline constexpr size_t kLineWidth = 120;

/// Slices whose ends are more than a number or a name, with the spaces that formatters put there: `x[:, : self.size]`.
std::string space_slices(std::string_view statement);

/// One statement, indented; broken inside its brackets where it is too long.
std::string lay_out(std::string_view statement, size_t indent);

}  // namespace tonnx::python
