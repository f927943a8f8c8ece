// size_test.cpp - many nodes in one model.
#include <fstream>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Model;

/// The most memory that this process has had, in bytes.
uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    uint64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

/// x -> (Neg -> Identity -> Exp -> Sin) ... -> y
Model chain(int64_t count) {
  Model model = Model::create(17);
  tonnx::GraphEditor edit = model.edit();
  const char* ops[] = {"Neg", "Identity", "Exp", "Sin"};
  tonnx::ValueView value = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {"batch", 16}));
  for (int64_t i = 0; i < count; ++i)
    value = edit.add_node(ops[i % 4], {value}, {.outputs = {"v" + std::to_string(i)}}).output();
  edit.add_output(value);
  edit.set_type(value, tonnx::Type::tensor(DType::Float32, {"batch", 16}));
  return model;
}

TEST(ApiSize, AMillionNodesTakeLittle) {
  constexpr int64_t kNodes = 1'000'000;
  constexpr uint64_t kMost = uint64_t{2} << 30;
  const Folder folder;
  Model model = chain(kNodes);
  EXPECT_EQ(model.graph().node_count(), static_cast<size_t>(kNodes));
  model.check();
  const tonnx::Report report = model.simplify();
  EXPECT_EQ(report.nodes_before(), kNodes);
  EXPECT_EQ(report.nodes_after(), kNodes * 3 / 4);
  model.write(folder / "m.onnx");
  EXPECT_EQ(Model::read(folder / "m.onnx").graph().node_count(), static_cast<size_t>(kNodes * 3 / 4));
  EXPECT_LT(peak_memory(), kMost);
}

}  // namespace
