// tables.h - constants that can be computed from their indices.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace tonnx {

/// Which places of a window see each other, where a plane that was rolled is cut into windows: those on the same side
/// of both edges. `same` stands for them in the table, and `other` for all others.
struct WindowRegions {
  int64_t rows, columns;          // so many windows
  int64_t height, width;          // so many places in each
  int64_t row_edge, column_edge;  // the first row and column of the plane behind the edge; 0 where there is none
  int64_t same, other;
};

/// Of a table [windows, places, places].
std::optional<WindowRegions> find_window_regions(const std::vector<int64_t>& numbers, int64_t windows, int64_t places);

/// A table whose element depends on `column - row` alone, and grows with what it counts: one step at each of these.
struct RelativeTable {
  enum class Of : uint8_t { Columns, Rows, Distance };  // column - row, row - column, or the larger of both
  Of of;
  int64_t first;               // before all steps
  std::vector<int64_t> steps;  // in their order; several at one place where it grows by more than 1
  int64_t behind;              // is added where column > row
};

/// Of a table [rows, columns].
std::optional<RelativeTable> find_relative_table(const std::vector<int64_t>& numbers, int64_t rows, int64_t columns);

}  // namespace tonnx
