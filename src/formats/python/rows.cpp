// rows.cpp - finds rows that only count on.
#include "formats/python/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

namespace tonnx::python {
namespace {

constexpr size_t kLongestPeriod = 8;  // keys and values of one layer
constexpr size_t kFewest = 3;         // fewer rows stay as they are

bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

/// The next part of a text: digits, or what is between digits.
std::string_view next_part(std::string_view& text) {
  const bool is_number = is_decimal(text[0]);
  const auto end = std::find_if(text.begin(), text.end(), [&](char c) { return is_decimal(c) != is_number; });
  const std::string_view part = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(part.size());
  return part;
}

/// The number that digits without leading zeros are.
std::optional<int64_t> whole_number(std::string_view digits) {
  int64_t number = 0;
  if (digits.empty() || digits.size() > 9 || !is_decimal(digits[0]) || (digits[0] == '0' && digits.size() > 1))
    return std::nullopt;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

/// The text `first` counted up to `other`, where they are the same but for numbers that are `distance` more. The names
/// of sizes that nobody named (u12) may be any.
std::optional<std::string> counted_up(std::string_view first, std::string_view other, int64_t distance) {
  std::string result;
  bool is_unnamed = false;
  while (!first.empty() && !other.empty()) {
    const std::string_view a = next_part(first), b = next_part(other);
    const auto from = whole_number(a), to = whole_number(b);
    if (a == b || (is_unnamed && from && to))
      result += a;
    else if (from && to && *to - *from == distance)
      result += fmt::format("{}..{}", a, b);
    else
      return std::nullopt;
    const bool is_letter = a.size() > 1 && std::isalnum(static_cast<unsigned char>(a[a.size() - 2]));
    is_unnamed = a.ends_with('u') && !is_letter;
  }
  return first.empty() && other.empty() ? std::optional(result) : std::nullopt;
}

std::optional<Row> counted_up(const Row& first, const Row& other, int64_t distance) {
  auto name = counted_up(first.name, other.name, distance);
  auto about = counted_up(first.about, other.about, distance);
  if (!name || !about || first.name == other.name) return std::nullopt;
  return Row{std::move(*name), std::move(*about)};
}

/// How often as many rows, from that one on, are there again.
size_t count_repeats(const std::vector<Row>& rows, size_t start, size_t period) {
  size_t times = 1;
  while (start + (times + 1) * period <= rows.size()) {
    for (size_t i = start; i < start + period; ++i) {
      if (!counted_up(rows[i], rows[i + times * period], static_cast<int64_t>(times))) return times;
    }
    ++times;
  }
  return times;
}

}  // namespace

std::vector<Row> counted_together(const std::vector<Row>& rows) {
  std::vector<Row> result;
  for (size_t at = 0; at < rows.size();) {
    size_t period = 1, times = 1;
    for (size_t length = 1; length <= kLongestPeriod && times < kFewest; ++length) {
      period = length;
      times = count_repeats(rows, at, length);
    }
    if (times < kFewest) {
      result.push_back(rows[at++]);
      continue;
    }
    const size_t last = (times - 1) * period;
    for (size_t i = at; i < at + period; ++i)
      result.push_back(*counted_up(rows[i], rows[i + last], static_cast<int64_t>(times) - 1));
    at += times * period;
  }
  return result;
}

}  // namespace tonnx::python
