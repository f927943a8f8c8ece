// fuzzer.cpp - the program that libFuzzer drives: `tonnx_fuzz --target=NAME [options of libFuzzer] [folders]`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fuzz/targets/targets.h"

namespace {

const tonnx::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kOption)) chosen = tonnx::fuzz::find_target(argument.substr(kOption.size()));
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
