// join.h - lists as text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

std::string joined(const std::vector<std::string>& items, std::string_view between = ", ");
std::string joined(const std::vector<int64_t>& items, std::string_view between = ", ");

}  // namespace tonnx
