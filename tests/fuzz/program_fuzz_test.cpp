// program_fuzz_test.cpp - damaged programs of PyTorch, to ONNX, Python and TorchScript: errors are fine, crashes and
// our own are not.
#include <algorithm>
#include <cstdlib>

#include "checks.h"
#include "fuzz/mutate.h"
#include "fuzz/targets/targets.h"

namespace tonnx {
namespace {

std::vector<std::string> program_seeds() {
  std::vector<std::string> result;
  for (const auto& file : std::filesystem::directory_iterator(TONNX_TEST_FILES "/formats/pt2/programs"))
    result.push_back(content_of(file.path().string()));
  std::sort(result.begin(), result.end());
  return result;
}

TEST(Fuzz, DamagedProgramsGiveErrorsAndNothingWorse) {
  const char* const more = std::getenv("TONNX_FUZZ_ROUNDS");
  const char* const start = std::getenv("TONNX_FUZZ_SEED");
  const char* const keep = std::getenv("TONNX_FUZZ_KEEP");
  const int rounds = more != nullptr ? std::atoi(more) : 3000;
  const unsigned first = start != nullptr ? static_cast<unsigned>(std::atoi(start)) : 1;
  const std::vector<std::string> originals = program_seeds();
  ASSERT_FALSE(originals.empty());
  for (const std::string& json : originals) EXPECT_EQ(fuzz::convert_program_all_ways(json), 2);
  for (int round = 0; round < rounds; ++round) {
    const unsigned number = first + static_cast<unsigned>(round);
    fuzz::Random random(number);
    const std::string& seed = originals[random() % originals.size()];
    const std::string json = fuzz::damaged_program(seed, originals[random() % originals.size()], random());
    if (keep != nullptr) write_file(keep, json);  // so that a crash leaves its cause behind
    try {
      fuzz::convert_program_all_ways(json);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "TONNX_FUZZ_SEED=" << number << " TONNX_FUZZ_ROUNDS=1: " << e.what();
    }
  }
}

}  // namespace
}  // namespace tonnx
