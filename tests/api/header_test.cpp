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

/// What the command line and the Python package can do, the library can: they include nothing else of tonnx, but for
/// their own headers, and the package for those of the command line.
TEST(ApiHeader, CommandLineAndBindingHaveNothingElse) {
  const auto source = std::filesystem::path(TONNX_INCLUDE).parent_path();
  size_t count = 0;
  for (const char* folder : {"src/cli", "python/bindings"}) {
    for (const auto& file : std::filesystem::directory_iterator(source / folder)) {
      ++count;
      for (const std::string& name : includes_of(file.path())) {
        const std::string path = name.substr(1, name.size() - 2);
        const bool is_own = path.starts_with("cli/") || std::filesystem::exists(source / folder / path);
        const bool is_public = path.starts_with("tonnx/") && std::filesystem::exists(source / "include" / path);
        const bool is_inside = std::filesystem::exists(source / "src" / path) && !path.starts_with("cli/");
        EXPECT_TRUE(name.front() == '<' ? !is_inside || is_public : is_own) << file.path() << " includes " << name;
      }
    }
  }
  EXPECT_GE(count, 20U);
}

}  // namespace
