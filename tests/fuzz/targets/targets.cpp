// targets.cpp - the table of the fuzzers, and what they share.
#include "fuzz/targets/targets.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "fuzz/targets/rows.h"

namespace tonnx::fuzz {
namespace {

void draw_aten_row(std::string_view bytes) {
  static const std::vector<Row> rows = aten_rows();
  run_case(rows, bytes);
}

void draw_graph_row(std::string_view bytes) {
  static const std::vector<Row> rows = graph_rows();
  run_case(rows, bytes);
}

void draw_onnx_row(std::string_view bytes) {
  static const std::vector<Row> rows = onnx_rows();
  run_case(rows, bytes);
}

/// Another row and another seed: what lies near a case in bytes is not like it in any other way.
std::string drawn_case(const std::string&, const std::string&, unsigned seed) {
  std::string bytes;
  std::mt19937 random(seed);
  for (int i = 0; i < 6; ++i) bytes += static_cast<char>(random());
  return bytes;
}

constexpr Target kTargets[] = {
    {"onnx", "reads an ONNX file, writes it and reads it again", read_onnx_bytes, damaged_message},
    {"onnx_routes", "an ONNX file on every route: simplify, infer, opsets, .py, .pt2, .pt", route_onnx,
     damaged_message},
    {"pt2", "reads a .pt2 archive with all that is in it", read_archive},
    {"program", "the program of a .pt2 on every route: .onnx, .py, .pt", route_program, damaged_program},
    {"aten_rows", "every operator of aten, in programs that lie", draw_aten_row, drawn_case},
    {"graph_rows", "operators that take graphs, in programs that lie", draw_graph_row, drawn_case},
    {"onnx_rows", "every operator of ONNX, in models that lie", draw_onnx_row, drawn_case},
    {"zip", "reads a zip file, every entry", read_zip},
    {"pickle", "reads a pickle", read_pickle},
    {"pth", "reads a file of weights", read_weights},
    {"safetensors", "reads a safetensors file", read_header},
    {"script_code", "reads the code of a TorchScript archive", read_script_code},
    {"torchscript", "reads a TorchScript archive, and runs its code", read_script_archive},
    {"yaml", "reads the list of a batch", read_yaml},
    {"text", "reads the text form of a model, prints it and reads it again", read_text_form},
    {"sympy", "reads an expression of sizes", read_sympy},
    {"json", "reads a JSON text", read_json},
};

}  // namespace

void run_case(const std::vector<Row>& rows, std::string_view bytes) {
  uint16_t row = 0;
  uint32_t seed = 0;
  if (bytes.size() < sizeof row + sizeof seed) return;
  std::memcpy(&row, bytes.data(), sizeof row);
  std::memcpy(&seed, bytes.data() + sizeof row, sizeof seed);
  rows[row % rows.size()].run(seed);
}

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto at =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& t) { return t.name == name; });
  return at == std::end(kTargets) ? nullptr : at;
}

bool tried(const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return false;
  }
}

unsigned choice_of(std::string_view bytes) {
  unsigned sum = 2166136261U;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
  return sum;
}

std::string scratch_file(std::string_view name) {
  struct Folder {
    Folder() : path((std::filesystem::temp_directory_path() / "tonnx-fuzz-XXXXXX").string()) {
      if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make a folder");
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  };
  static const Folder folder;
  return (std::filesystem::path(folder.path) / name).string();
}

}  // namespace tonnx::fuzz
