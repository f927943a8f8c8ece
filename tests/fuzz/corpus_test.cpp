// corpus_test.cpp - every input that is checked in, and every one that a fuzzer ever found, through its target.
#include <algorithm>

#include "checks.h"
#include "fuzz/targets/targets.h"

namespace tonnx::fuzz {
namespace {

std::vector<std::filesystem::path> inputs_of(std::string_view target) {
  std::vector<std::filesystem::path> result;
  for (const char* const folder : {"corpus", "found"}) {
    const auto path = std::filesystem::path(TONNX_TEST_FILES "/fuzz") / folder / target;
    if (!std::filesystem::is_directory(path)) continue;
    for (const auto& file : std::filesystem::directory_iterator(path)) result.push_back(file.path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(Corpus, NoInputDoesWorseThanAnError) {
  size_t count = 0;
  for (const Target& target : targets()) {
    // what the reader of ONNX takes is also what goes along the routes
    for (const auto& path : inputs_of(target.name == "onnx" ? "onnx_routes" : target.name)) {
      ++count;
      EXPECT_NO_THROW(target.run(content_of(path.string()))) << target.name << ' ' << path;
    }
  }
  EXPECT_GT(count, 300U);
}

TEST(Corpus, EveryTargetHasInputs) {
  for (const Target& target : targets()) {
    const bool is_elsewhere =
        target.name == "onnx" || target.name == "program";  // onnx_routes, and formats/pt2/programs
    EXPECT_TRUE(is_elsewhere || !inputs_of(target.name).empty()) << target.name;
  }
}

}  // namespace
}  // namespace tonnx::fuzz
