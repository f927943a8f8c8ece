// nearest.cpp - what somebody may have meant by a name that nobody has.
#include "base/nearest.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tonnx {
namespace {

constexpr size_t kLongestName = 64;  // of names that are compared: files may have names of any length
constexpr size_t kListed = 20;

/// How many characters must be changed, added or left out.
size_t distance(std::string_view a, std::string_view b) {
  if (a.size() > kLongestName || b.size() > kLongestName) return std::numeric_limits<size_t>::max();
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

/// The same in proportion to the length: `opset` is nearer to `opset_version` than to `path`.
double unlikeness(std::string_view a, std::string_view b) {
  return static_cast<double>(distance(a, b)) / static_cast<double>(std::max<size_t>({a.size(), b.size(), 1}));
}

}  // namespace

Names nearest_first(std::string_view name, Names known) {
  std::vector<std::pair<double, std::string_view>> rated;
  rated.reserve(known.size());
  for (const std::string_view one : known) rated.emplace_back(unlikeness(name, one), one);
  std::stable_sort(rated.begin(), rated.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(rated.begin(), rated.end(), known.begin(), [](const auto& one) { return one.second; });
  return known;
}

std::string nearest_list(std::string_view name, const Names& known) {
  if (known.empty()) return "none";
  std::string result;
  const Names sorted = nearest_first(name, known);
  const size_t listed = std::min(sorted.size(), kListed);
  for (size_t i = 0; i < listed; ++i) {
    if (i > 0) result += ", ";
    result += sorted[i];
  }
  if (sorted.size() > listed) result += " and " + std::to_string(sorted.size() - listed) + " more";
  return result;
}

std::string did_you_mean(std::string_view name, const Names& known) {
  const Names sorted = nearest_first(name, known);
  if (!sorted.empty() && is_near(name, sorted[0])) return "; did you mean '" + std::string(sorted[0]) + "'?";
  return "; there are: " + nearest_list(name, known);
}

bool is_near(std::string_view name, std::string_view known) {
  return distance(name, known) <= std::max<size_t>(2, name.size() / 3);
}

}  // namespace tonnx
