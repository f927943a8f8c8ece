// option_text.cpp - reads sizes, and ranges of sizes, that are given as text.
#include "convert/option_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"

namespace tonnx {
namespace {

int64_t parse_size(std::string_view item, std::string_view whole) {
  int64_t value = 0;
  const auto [last, error] = std::from_chars(item.data(), item.data() + item.size(), value);
  require(error == std::errc() && last == item.data() + item.size() && !item.empty(), "'{}' in '{}' is not a number",
          item, whole);
  return value;
}

}  // namespace

void parse_dynamic_size(std::string_view text, DynamicDim& dim) {
  const size_t range = text.find(':');
  dim.name = text.substr(0, range);
  require(!dim.name.empty(), "'{}' gives the size no name", text);
  if (range == std::string_view::npos) return;
  const std::string_view ends = text.substr(range + 1);
  const size_t dots = ends.find("..");
  require(dots != std::string_view::npos, "the range in '{}' is not of the form 1..64", text);
  if (dots > 0) dim.low = parse_size(ends.substr(0, dots), text);
  if (dots + 2 < ends.size()) dim.high = parse_size(ends.substr(dots + 2), text);
  require(dim.low >= 0 && (!dim.high || *dim.high >= dim.low), "the sizes from {} to {} are none", dim.low,
          dim.high.value_or(0));
}

std::vector<DynamicDim> parse_dynamic(const std::string& text) {
  if (text == "auto") return {DynamicDim{.input = "", .axis = 0, .name = "batch", .low = 0, .high = std::nullopt}};
  const size_t first = text.find('=');
  const size_t colon = first == std::string::npos ? first : text.rfind(':', first);
  require(colon != std::string::npos && colon > 0,
          "'{}' is not of the form name:0=batch, name:0=batch:1..64 or name:0=batch,2=height", text);
  std::vector<DynamicDim> result;
  for (std::string_view rest = std::string_view(text).substr(colon + 1); !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const size_t equals = item.find('=');
    require(equals != std::string_view::npos && equals + 1 < item.size(), "'{}' in '{}' is not of the form 0=batch",
            item, text);
    DynamicDim& dim = result.emplace_back();
    dim.input = text.substr(0, colon);
    dim.axis = parse_size(item.substr(0, equals), text);
    parse_dynamic_size(item.substr(equals + 1), dim);
  }
  return result;
}

void parse_limit(const std::string& text, Limits& limits) {
  const size_t equals = text.find('=');
  require(equals != std::string::npos, "'{}' is not of the form memory=1G", text);
  limits.set(std::string_view(text).substr(0, equals), parse_bytes(text.substr(equals + 1)));
}

int64_t parse_bytes(const std::string& text) {
  double number = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(last, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::toupper(c); });
  if (unit.ends_with("IB")) unit.erase(unit.size() - 2, 1);
  if (unit.ends_with('B')) unit.pop_back();
  constexpr std::string_view kUnits = "KMGT";
  const size_t power = unit.empty() ? 0 : kUnits.find(unit[0]) + 1;
  require(error == std::errc() && number >= 0 && unit.size() <= 1 && power <= kUnits.size(),
          "'{}' is not a size such as 1MB", text);
  for (size_t i = 0; i < power; ++i) number *= 1024;
  require(number < 9e18, "'{}' is too large", text);
  return static_cast<int64_t>(number);
}

}  // namespace tonnx
