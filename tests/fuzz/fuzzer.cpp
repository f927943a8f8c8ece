// fuzzer.cpp - the program that libFuzzer drives: `tonnx_fuzz --target=NAME [options of libFuzzer] [folders]`.
// `tonnx_fuzz --target=NAME --draw=COUNT FOLDER [folders]` writes damaged inputs into the folder, and runs nothing:
// they are the same each time, which those that coverage leads to are not (containers of pointers are walked in another
// order).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/mutate.h"
#include "fuzz/targets/targets.h"

namespace {

const tonnx::fuzz::Target* chosen = nullptr;

std::vector<std::string> files_in(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::erase_if(texts, [](const std::string& text) { return text.empty(); });
  return texts;
}

/// Each seed in turn, damaged once to three times.
void draw(int count, const std::string& into, const std::vector<std::string>& folders) {
  const std::vector<std::string> seeds = files_in(folders);
  if (seeds.empty()) return;
  tonnx::fuzz::Random random(1);
  for (int i = 0; i < count; ++i) {
    std::string bytes = seeds[static_cast<size_t>(i) % seeds.size()];
    for (unsigned times = random() % 3 + 1; times > 0; --times) {
      const std::string& donor = seeds[random() % seeds.size()];
      const bool is_blind = chosen->mutate == nullptr || random() % 4 == 0;
      std::string damaged = is_blind ? tonnx::fuzz::mutated(bytes, {donor}, random)
                                     : chosen->mutate(bytes, donor, static_cast<unsigned>(random()));
      if (!damaged.empty()) bytes = std::move(damaged);
    }
    std::ofstream(into + "/drawn_" + std::to_string(i), std::ios::binary) << bytes;
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kTarget = "--target=", kDraw = "--draw=";
  int count = 0;
  std::vector<std::string> folders;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kTarget)) chosen = tonnx::fuzz::find_target(argument.substr(kTarget.size()));
    if (argument.starts_with(kDraw)) count = std::atoi(std::string(argument.substr(kDraw.size())).c_str());
    if (!argument.starts_with("-")) folders.emplace_back(argument);
  }
  if (chosen != nullptr && count > 0 && !folders.empty()) {
    const std::string into = folders.front();
    folders.erase(folders.begin());
    draw(count, into, folders);
    std::exit(0);
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "--target=NAME is one of\n");
  for (const auto& target : tonnx::fuzz::targets()) {
    std::fprintf(stderr, "  %-12s %s\n", std::string(target.name).c_str(), std::string(target.about).c_str());
  }
  std::exit(1);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}

/// Half of the time along the structure of the bytes, half of the time as libFuzzer does it.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (chosen->mutate == nullptr || seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string result = chosen->mutate(bytes, bytes, seed / 2);
  if (result.size() > max_size || result.empty()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, result.data(), result.size());
  return result.size();
}
