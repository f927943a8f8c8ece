// join.cpp - lists as text.
#include "base/join.h"

namespace tonnx {
namespace {

template <class Items, class Text>
std::string join_all(const Items& items, std::string_view between, const Text& text) {
  std::string result;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) result += between;
    result += text(items[i]);
  }
  return result;
}

constexpr auto kAsItIs = [](const auto& item) -> const auto& { return item; };

}  // namespace

std::string joined(const std::vector<std::string>& items, std::string_view between) {
  return join_all(items, between, kAsItIs);
}

std::string joined(const std::vector<int64_t>& items, std::string_view between) {
  return join_all(items, between, [](int64_t item) { return std::to_string(item); });
}

}  // namespace tonnx
