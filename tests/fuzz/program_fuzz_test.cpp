// program_fuzz_test.cpp - damaged programs of PyTorch, to ONNX, Python and TorchScript: errors are fine, crashes and
// our own are not.
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "checks.h"
#include "convert/pipeline.h"
#include "convert/to_program.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/dtype.h"
#include "fuzz/mutate.h"

namespace tonnx {
namespace {

/// The weights that a program names, all zeros: only the program itself is damaged.
void add_weights(const std::string& json, Pt2Archive& archive) {
  const rapidjson::Document program = parse_json(json, "a program");
  const auto& module = program["graph_module"];
  const auto& tensors = module["graph"]["tensor_values"];
  for (const auto& spec : module["signature"]["input_specs"].GetArray()) {
    const auto kind = spec.MemberBegin();
    for (const char* key : {"parameter_name", "buffer_name", "tensor_constant_name"}) {
      if (!kind->value.HasMember(key)) continue;
      const auto& meta = tensors[kind->value["arg"]["name"].GetString()];
      auto tensor = std::make_shared<Tensor>();
      tensor->dtype = dtype_of_pt2(meta["dtype"].GetInt64());
      for (const auto& size : meta["sizes"].GetArray()) tensor->dims.push_back(size["as_int"].GetInt64());
      tensor->data = Bytes::own(std::vector<uint8_t>(static_cast<size_t>(byte_size(tensor->dtype, tensor->count()))));
      archive.weights[kind->value[key].GetString()] = {tensor, true, false};
      archive.constants[kind->value[key].GetString()] = {tensor, false, false};
    }
  }
}

struct Seed {
  std::string json;
  Pt2Archive archive;
};

std::vector<Seed> seeds() {
  std::vector<Seed> result;
  for (const auto& file : std::filesystem::directory_iterator(TONNX_TEST_FILES "/formats/pt2/programs")) {
    std::ifstream stream(file.path());
    Seed seed;
    seed.json.assign(std::istreambuf_iterator<char>(stream), {});
    add_weights(seed.json, seed.archive);
    result.push_back(std::move(seed));
  }
  std::sort(result.begin(), result.end(), [](const Seed& a, const Seed& b) { return a.json < b.json; });
  return result;
}

/// The places of texts and numbers; one of them takes the place of another, or becomes something odd.
std::string damaged(const std::string& json, const std::vector<std::string>& donors, fuzz::Random& random) {
  if (random() % 20 == 0) return fuzz::mutated(json, donors, random);
  std::vector<std::pair<size_t, size_t>> texts, numbers;
  for (size_t i = 0; i < json.size(); ++i) {
    size_t end = i;
    if (json[i] == '"') {
      for (end = i + 1; end < json.size() && json[end] != '"'; ++end) end += json[end] == '\\';
      texts.emplace_back(i, ++end - i);
    } else if ((json[i] >= '0' && json[i] <= '9') || json[i] == '-') {
      while (end < json.size() && json.find_first_of("0123456789-.e", end) == end) ++end;
      numbers.emplace_back(i, end - i);
    } else {
      continue;
    }
    i = end - 1;
  }
  constexpr const char* kNumbers[] = {"0", "1", "2", "3", "-1", "-2", "7", "12", "99", "1e30", "9223372036854775807"};
  std::string result = json;
  for (unsigned count = 1 + random() % 2; count > 0; --count) {
    const bool is_text = random() % 2 == 0;
    const auto& places = is_text ? texts : numbers;
    const auto [at, size] = places[random() % places.size()];
    const auto [from, length] = places[random() % places.size()];
    if (at + size > result.size()) continue;
    const std::string piece =
        !is_text && random() % 2 == 0 ? kNumbers[random() % std::size(kNumbers)] : json.substr(from, length);
    result.replace(at, size, piece);
  }
  return result;
}

bool converts(const std::string& json, Pt2Archive archive, bool to_python) {
  try {
    archive.program = Bytes::own(json);
    Program program = read_program(archive);
    make_functional(program);
    if (to_python) {
      ready_for_python(program);
      const bool is_written = !write_python(*program.model.graph, program.model, {}).source.empty();
      write_torchscript_file(*program.model.graph, program.output_names, testing::TempDir() + "tonnx_fuzz.pt", {});
      return is_written;
    }
    return !write_onnx_bytes(onnx_of(program, {})).empty();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return false;
  }
}

TEST(Fuzz, DamagedProgramsGiveErrorsAndNothingWorse) {
  const char* const more = std::getenv("TONNX_FUZZ_ROUNDS");
  const char* const start = std::getenv("TONNX_FUZZ_SEED");
  const char* const keep = std::getenv("TONNX_FUZZ_KEEP");
  const int rounds = more != nullptr ? std::atoi(more) : 3000;
  const unsigned first = start != nullptr ? static_cast<unsigned>(std::atoi(start)) : 1;
  const std::vector<Seed> originals = seeds();
  std::vector<std::string> donors;
  for (const Seed& seed : originals) {
    donors.push_back(seed.json);
    EXPECT_TRUE(converts(seed.json, seed.archive, false));
  }
  ASSERT_FALSE(originals.empty());
  for (int round = 0; round < rounds; ++round) {
    const unsigned number = first + static_cast<unsigned>(round);
    fuzz::Random random(number);
    const Seed& seed = originals[random() % originals.size()];
    const std::string json = damaged(seed.json, donors, random);
    if (keep != nullptr) write_file(keep, json);  // so that a crash leaves its cause behind
    const auto begin = std::chrono::steady_clock::now();
    try {
      converts(json, seed.archive, random() % 4 == 0);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "TONNX_FUZZ_SEED=" << number << " TONNX_FUZZ_ROUNDS=1: " << e.what();
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(spent.count(), 10.0) << "TONNX_FUZZ_SEED=" << number << " TONNX_FUZZ_ROUNDS=1: takes too long";
  }
}

}  // namespace
}  // namespace tonnx
