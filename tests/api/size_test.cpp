// size_test.cpp - many nodes in one model, and many conversions at once.
#include <algorithm>
#include <fstream>
#include <thread>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Format;
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

TEST(ApiThreads, ConversionsAtOnceGiveEqualBytes) {
  constexpr int kConversions = 200, kThreads = 8;
  const std::vector<std::byte> file = two_layers().to_bytes(Format::Onnx);
  const Format formats[] = {Format::Onnx, Format::TorchExport, Format::TorchScript, Format::SafeTensors, Format::Pth};
  const auto convert = [&](int number) {
    Model model = Model::read(file, Format::Onnx);
    if (number % 2 == 1) model.simplify();
    return model.to_bytes(formats[number % 5]);
  };
  std::vector<std::vector<std::byte>> expected, found(kConversions);
  for (int i = 0; i < 10; ++i) expected.push_back(convert(i));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kConversions; i += kThreads) found[static_cast<size_t>(i)] = convert(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i % 10]) << i;
}

/// Models of many operators, a few of which cannot be converted.
TEST(ApiThreads, ManyOperatorsAtOnceGiveWhatTheyGiveAlone) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(TONNX_TEST_FILES "/fuzz/corpus/onnx_routes"))
    files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 100U);
  const auto convert = [&](size_t number) {
    const Format formats[] = {Format::TorchExport, Format::TorchScript, Format::SafeTensors, Format::Onnx};
    try {
      Model model = Model::read(files[number], Format::Onnx);
      std::string text = model.to_python();
      if (number % 2 == 1) model.simplify();
      const std::vector<std::byte> bytes = model.to_bytes(formats[number % 4]);
      return text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } catch (const tonnx::Error& e) {
      return std::string(e.what());
    }
  };
  std::vector<std::string> found(files.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < files.size(); i += 8) found[i] = convert(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(found[i], convert(i)) << files[i];
}

TEST(ApiThreads, OneModelServesManyReaders) {
  const Model model = two_layers();
  const std::string text = model.text(), code = model.to_python();
  const std::vector<std::byte> bytes = model.to_bytes(Format::TorchExport);
  std::vector<std::thread> threads;
  std::vector<int> right(8);
  for (int& each : right) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i)
        each += model.text() == text && model.to_python() == code && model.to_bytes(Format::TorchExport) == bytes &&
                model.clone().simplify().nodes_after() == 3;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(8, 5));
}

}  // namespace
