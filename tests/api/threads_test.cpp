// threads_test.cpp - many conversions at once: what they share is made by the first that needs it.
#include <tonnx/module.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Format;
using tonnx::Model;

/// Calls `use` with all numbers below `count`, in eight threads. What a conversion gives alone is looked at afterwards:
/// so nothing that they share has been made before.
void in_threads(size_t count, const std::function<void(size_t)>& use) {
  constexpr size_t kThreads = 8;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < count; i += kThreads) use(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ApiThreads, ConversionsAtOnceGiveEqualBytes) {
  constexpr size_t kConversions = 200;
  const std::vector<std::byte> file = two_layers().to_bytes(Format::Onnx);
  const Format formats[] = {Format::Onnx, Format::TorchExport, Format::TorchScript, Format::SafeTensors, Format::Pth};
  const auto convert = [&](size_t number) {
    Model model = Model::read(file, Format::Onnx);
    if (number % 2 == 1) model.simplify();
    return model.to_bytes(formats[number % 5]);
  };
  std::vector<std::vector<std::byte>> expected, found(kConversions);
  in_threads(kConversions, [&](size_t i) { found[i] = convert(i); });
  for (size_t i = 0; i < 10; ++i) expected.push_back(convert(i));
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
  in_threads(files.size(), [&](size_t i) { found[i] = convert(i); });
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(found[i], convert(i)) << files[i];
}

TEST(ApiThreads, OneModelServesManyReaders) {
  const Model model = two_layers();
  const std::string text = model.text(), code = model.to_python();
  const std::vector<std::byte> bytes = model.to_bytes(Format::TorchExport);
  std::vector<int> right(40);
  in_threads(right.size(), [&](size_t i) {
    right[i] = model.text() == text && model.to_python() == code && model.to_bytes(Format::TorchExport) == bytes &&
               model.clone().simplify().nodes_after() == 3;
  });
  EXPECT_EQ(right, std::vector<int>(40, 1));
}

TEST(ApiThreads, ArchivesOfPyTorchAtOnceGiveWhatTheyGiveAlone) {
  std::vector<std::string> files;
  for (const char* kind : {"pt2", "torchscript"}) {
    for (const auto& file : std::filesystem::directory_iterator(TONNX_TEST_FILES "/fuzz/corpus/" + std::string(kind)))
      files.push_back(file.path().string());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 6U);
  const auto convert = [&](size_t number) {
    const Format formats[] = {Format::Onnx, Format::TorchExport, Format::SafeTensors};
    try {
      const Model model = Model::read(files[number % files.size()]);
      const std::vector<std::byte> bytes = model.to_bytes(formats[number / files.size() % 3]);
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } catch (const tonnx::Error& e) {
      return std::string(e.what());
    }
  };
  std::vector<std::string> found(files.size() * 6);
  in_threads(found.size(), [&](size_t i) { found[i] = convert(i); });
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], convert(i)) << files[i % files.size()];
}

/// x [batch, 1024] -> MatMul -> Mul -> Gemm with a weight that is cast -> y: weights so large that each conversion has
/// threads of its own, which scale, turn and cast them.
Model large_weights() {
  constexpr int64_t kSide = 1024;
  Model model = Model::create(17);
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {"batch", kSide}));
  const auto turned = edit.add_initializer("turned", floats({kSide, kSide}));
  const auto scale = edit.add_initializer("scale", floats({kSide}));
  const std::vector<uint16_t> halves(static_cast<size_t>(kSide * kSide), 0x3c01);
  const auto narrow = edit.add_initializer("narrow", tonnx::Tensor::of(DType::Float16, {kSide, kSide}, halves));
  const auto product = edit.add_node("MatMul", {x, turned}, {.name = "/a/MatMul"});
  const auto scaled = edit.add_node("Mul", {product.output(), scale}, {.name = "/a/Mul"});
  const auto cast = edit.add_node("Cast", {narrow}, {.name = "/b/Cast", .attributes = {{"to", 1}}});
  const auto last = edit.add_node("Gemm", {scaled.output(), cast.output()}, {.name = "/b/Gemm"});
  edit.rename(last.output(), "y");
  edit.set_type(last.output(), tonnx::Type::tensor(DType::Float32, {"batch", kSide}));
  edit.add_output(last.output());
  return model;
}

TEST(ApiThreads, LargeWeightsAreChangedByThreadsOfEachConversion) {
  const Folder folder;
  large_weights().write(folder / "m.onnx");
  const auto convert = [&](size_t number, const std::string& name) {
    Model model = Model::read(folder / "m.onnx");
    if (number % 4 == 3) {
      tonnx::ModuleConversion conversion(std::move(model));
      conversion.begin_copies();
      conversion.prepare();
      conversion.lower();
      tonnx::ModuleCode code = conversion.code();
      code.copies.wait();
      tonnx::write_module(folder / (name + ".py"), code.source, {}, code.state);
      return tonnx::read_text(folder / (name + ".safetensors"));
    }
    if (number % 4 == 0) model.simplify();
    const std::string endings[] = {".onnx", ".safetensors", ".pt2"};
    model.write(folder / (name + endings[number % 4]));
    return tonnx::read_text(folder / (name + endings[number % 4]));
  };
  std::vector<std::string> found(8);
  in_threads(found.size(), [&](size_t i) { found[i] = convert(i, "at_once" + std::to_string(i)); });
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i] == convert(i, "alone" + std::to_string(i))) << i;
}

}  // namespace
