// header_test.cpp - what including the interface costs, counted and not timed, and that it stands alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace {

std::set<std::string> includes_of(const std::filesystem::path& file) {
  std::set<std::string> result;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    std::smatch match;
    if (std::regex_match(line, match, std::regex(R"(#include ([<"].*[>"]).*)"))) result.insert(match[1]);
  }
  return result;
}

/// <memory>, <functional>, <iostream>, <map> and <algorithm> each take as long to compile as all of the interface.
TEST(ApiHeader, IncludesNothingThatIsSlowAndNothingFromInside) {
  const std::set<std::string> light{"<cstddef>", "<cstdint>", "<exception>",   "<optional>", "<span>",    "<string>",
                                    "<utility>", "<vector>",  "<string_view>", "<stddef.h>", "<stdint.h>"};
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(TONNX_INCLUDE) / "tonnx")) {
    ++count;
    for (const std::string& name : includes_of(file.path()))
      EXPECT_TRUE(light.contains(name) || name.starts_with("<tonnx/")) << file.path() << " includes " << name;
  }
  EXPECT_GE(count, 9U);
}

}  // namespace
