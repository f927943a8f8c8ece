// tables.cpp - recognises constants that can be computed from their indices.
#include "passes/constants/tables.h"

#include <algorithm>
#include <cstdlib>

namespace tonnx {
namespace {

constexpr size_t kMostSteps = 64;
constexpr int64_t kLeastPlaces = 3;  // a smaller table is like many others

/// Divisors, those first that are nearest to the root.
std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> found;
  for (int64_t i = 1; i <= number / i; ++i) {
    if (number % i != 0) continue;
    found.push_back(i);
    if (i != number / i) found.push_back(number / i);
  }
  std::sort(found.begin(), found.end(),
            [&](int64_t a, int64_t b) { return std::max(a, number / a) < std::max(b, number / b); });
  return found;
}

class Windows {
 public:
  Windows(const std::vector<int64_t>& numbers, int64_t windows, int64_t places)
      : numbers_(numbers), windows_(windows), places_(places), same_(numbers[0]) {}

  std::optional<WindowRegions> find() const {
    const auto other = std::find_if(numbers_.begin(), numbers_.end(), [&](int64_t n) { return n != same_; });
    if (other == numbers_.end() ||
        std::any_of(other, numbers_.end(), [&](int64_t n) { return n != same_ && n != *other; }))
      return std::nullopt;
    for (const int64_t height : divisors(places_)) {
      for (const int64_t rows : divisors(windows_)) {
        WindowRegions regions{rows, windows_ / rows, height, places_ / height, 0, 0, same_, *other};
        if (find_edges(regions) && is_all(regions)) return regions;
      }
    }
    return std::nullopt;
  }

 private:
  int64_t at(int64_t window, int64_t from, int64_t to) const {
    return numbers_[static_cast<size_t>((window * places_ + from) * places_ + to)];
  }

  /// At most one on each axis. It is seen in the first column and the first row, where the other one does not matter.
  bool find_edges(WindowRegions& r) const {
    for (int64_t y = 1; y < r.rows * r.height; ++y) {
      const int64_t place = y % r.height * r.width;
      if (place == 0 || at(y / r.height * r.columns, place - r.width, place) == same_) continue;
      if (r.row_edge != 0) return false;
      r.row_edge = y;
    }
    for (int64_t x = 1; x < r.columns * r.width; ++x) {
      const int64_t place = x % r.width;
      if (place == 0 || at(x / r.width, place - 1, place) == same_) continue;
      if (r.column_edge != 0) return false;
      r.column_edge = x;
    }
    return r.row_edge != 0 || r.column_edge != 0;
  }

  bool is_all(const WindowRegions& r) const {
    std::vector<int64_t> region(static_cast<size_t>(places_));
    for (int64_t window = 0; window < windows_; ++window) {
      for (int64_t place = 0; place < places_; ++place) {
        const int64_t y = window / r.columns * r.height + place / r.width;
        const int64_t x = window % r.columns * r.width + place % r.width;
        region[static_cast<size_t>(place)] = 2 * (y >= r.row_edge ? 1 : 0) + (x >= r.column_edge ? 1 : 0);
      }
      for (int64_t from = 0; from < places_; ++from) {
        for (int64_t to = 0; to < places_; ++to) {
          const bool is_same = region[static_cast<size_t>(from)] == region[static_cast<size_t>(to)];
          if (at(window, from, to) != (is_same ? r.same : r.other)) return false;
        }
      }
    }
    return true;
  }

  const std::vector<int64_t>& numbers_;
  int64_t windows_, places_, same_;
};

/// Where numbers grow, if they do nothing else and not too often; `start` is what the first one is of.
std::optional<std::vector<int64_t>> find_steps(const std::vector<int64_t>& numbers, int64_t start) {
  std::vector<int64_t> steps;
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] < numbers[i - 1] ||
        numbers[i] - numbers[i - 1] > static_cast<int64_t>(kMostSteps - std::min(steps.size(), kMostSteps)))
      return std::nullopt;
    steps.insert(steps.end(), static_cast<size_t>(numbers[i] - numbers[i - 1]), start + static_cast<int64_t>(i));
  }
  return steps.empty() ? std::nullopt : std::optional(steps);
}

}  // namespace

std::optional<WindowRegions> find_window_regions(const std::vector<int64_t>& numbers, int64_t windows, int64_t places) {
  if (windows < 2 || places < 2) return std::nullopt;
  return Windows(numbers, windows, places).find();
}

std::optional<RelativeTable> find_relative_table(const std::vector<int64_t>& numbers, int64_t rows, int64_t columns) {
  if (rows < kLeastPlaces || columns < kLeastPlaces) return std::nullopt;
  const auto at = [&](int64_t row, int64_t column) { return numbers[static_cast<size_t>(row * columns + column)]; };
  for (int64_t row = 1; row < rows; ++row) {
    for (int64_t column = 1; column < columns; ++column) {
      if (at(row, column) != at(row - 1, column - 1)) return std::nullopt;
    }
  }
  std::vector<int64_t> below, above;  // of rows over columns, and the other way round, 0 first in both
  for (int64_t row = 0; row < rows; ++row) below.push_back(at(row, 0));
  for (int64_t column = 0; column < columns; ++column) above.push_back(at(0, column));
  const auto joined = [](const std::vector<int64_t>& back, const std::vector<int64_t>& front) {
    std::vector<int64_t> all(back.rbegin(), back.rend());
    all.insert(all.end(), front.begin() + 1, front.end());
    return all;
  };
  if (const auto steps = find_steps(joined(below, above), 1 - rows))
    return RelativeTable{RelativeTable::Of::Columns, below.back(), *steps, 0};
  if (const auto steps = find_steps(joined(above, below), 1 - columns))
    return RelativeTable{RelativeTable::Of::Rows, above.back(), *steps, 0};
  const int64_t behind = above[1] - below[1];
  for (size_t i = 1; i < above.size(); ++i) {
    if (i < below.size() && above[i] - below[i] != behind) return std::nullopt;
    if (i >= below.size()) below.push_back(above[i] - behind);
  }
  const auto steps = find_steps(below, 0);
  if (!steps) return std::nullopt;
  return RelativeTable{RelativeTable::Of::Distance, below[0], *steps, behind};
}

}  // namespace tonnx
