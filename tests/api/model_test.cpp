// model_test.cpp - models through the public interface: read, looked at, simplified, written.
#include <unistd.h>

#include <stdexcept>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Error;
using tonnx::Format;
using tonnx::Model;

std::vector<std::string> ops_of(const Model& model) {
  std::vector<std::string> ops;
  for (const tonnx::NodeView& node : model.graph()) ops.emplace_back(node.op());
  return ops;
}

TEST(ApiModel, ShowsNodesValuesTypesAndWeights) {
  const Model model = two_layers();
  EXPECT_EQ(ops_of(model), (std::vector<std::string>{"Gemm", "Relu", "Identity", "Gemm"}));
  const tonnx::NodeView first = *model.graph().begin();
  EXPECT_EQ(first.name(), "/fc1/Gemm");
  EXPECT_EQ(first.version(), 17);
  EXPECT_EQ(first.find_attribute("transB")->as_int(), 1);
  EXPECT_FALSE(first.find_attribute("alpha"));
  ASSERT_EQ(first.input_count(), 3U);
  EXPECT_TRUE(first.input(0).is_input());
  EXPECT_EQ(tonnx::text_of(first.input(0).type()), "float32[batch, 4]");
  EXPECT_EQ(first.input(0).type().shape->at(0).text, "batch");
  EXPECT_EQ(first.input(0).type().shape->at(1).number, 4);
  const tonnx::ValueView weight = first.input(1);
  EXPECT_TRUE(weight.is_initializer());
  EXPECT_EQ(weight.tensor().bytes().size(), 8U * 4 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<const float*>(weight.tensor().bytes().data())[1], 0.625F);
  EXPECT_EQ(first.output().users().at(0).op(), "Relu");
  EXPECT_EQ(first.output().users().at(0).input(0).producer(), first);
  EXPECT_FALSE(first.input(0).producer());
  EXPECT_TRUE(model.graph().outputs().at(0).is_output());
  EXPECT_EQ(model.graph().find_value("hidden").producer().op(), "Relu");
  EXPECT_FALSE(model.graph().find_value("nobody"));
  EXPECT_THROW(model.graph().inputs().at(0).tensor(), Error);
}

TEST(ApiModel, ReadsFilesBytesAndSourcesAlike) {
  const Folder folder;
  two_layers().write(folder / "m.onnx");
  const Model file = Model::read(folder / "m.onnx");
  const std::vector<std::byte> bytes = bytes_of_file(folder / "m.onnx");
  EXPECT_EQ(Model::read(bytes, Format::Onnx).text(), file.text());
  EXPECT_EQ(Model::read(std::vector<std::byte>(bytes), Format::Onnx).text(), file.text());

  class Pieces : public tonnx::ByteSource {
   public:
    explicit Pieces(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
    uint64_t size() const override { return bytes_.size(); }
    void read(uint64_t offset, std::span<std::byte> into) const override {
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    }

   private:
    const std::vector<std::byte>& bytes_;
  };
  EXPECT_EQ(Model::read(Pieces(bytes), Format::Onnx).text(), file.text());
  EXPECT_EQ(file.text(), two_layers().text());
  EXPECT_EQ(file.opset(), 17);
  EXPECT_EQ(file.producer(), std::string("tonnx ") + tonnx::version());
}

TEST(ApiModel, BytesAreThoseOfTheFile) {
  const Folder folder;
  const Model model = two_layers();
  model.write(folder / "m.onnx");
  for (const auto& [format, name] :
       {std::pair(Format::Onnx, "o.onnx"), std::pair(Format::TorchExport, "o.pt2"),
        std::pair(Format::TorchScript, "o.pt"), std::pair(Format::SafeTensors, "o.safetensors"),
        std::pair(Format::Pth, "o.pth")}) {
    model.write(folder / name);
    const std::vector<std::byte> bytes = model.to_bytes(format);
    EXPECT_GT(bytes.size(), 100U) << name;
    EXPECT_EQ(bytes, bytes_of_file(folder / name)) << name;
    tonnx::convert(folder / "m.onnx", folder / ("c" + std::string(name)));
    EXPECT_EQ(bytes, bytes_of_file(folder / ("c" + std::string(name)))) << name;
  }
  EXPECT_THROW(model.to_bytes(Format::Python), Error);
}

TEST(ApiModel, ProgramsOfPyTorchBecomeOnnxAgain) {
  const Model model = two_layers();
  for (const Format format : {Format::TorchExport, Format::TorchScript}) {
    const std::vector<std::byte> bytes = model.to_bytes(format);
    const bool is_script = format == Format::TorchScript;
    const Model program = Model::read(
        bytes, format, is_script ? tonnx::ReadOptions{.input_shapes = {{"x", {-1, 4}}}} : tonnx::ReadOptions());
    EXPECT_EQ(program.format(), format);
    const tonnx::NodeView linear = *program.graph().begin();
    EXPECT_EQ(linear.domain(), "aten");
    EXPECT_EQ(linear.op(), "linear");
    EXPECT_EQ(linear.find_attribute("input")->as_value(), program.graph().inputs().at(0));
    const Model onnx = program.to_onnx({.opset = 18});
    EXPECT_EQ(onnx.opset(), 18);
    EXPECT_EQ(ops_of(onnx), (std::vector<std::string>{"Gemm", "Relu", "Gemm"}));
    EXPECT_EQ(ops_of(Model::read(program.to_bytes(Format::Onnx), Format::Onnx)), ops_of(onnx));
    EXPECT_THROW(program.clone().simplify(), Error);
    const Model open = program.to_onnx({.exporting = {.has_weights = false}});
    EXPECT_EQ(open.graph().inputs().size(), 5U);
    EXPECT_TRUE(open.graph().initializers().empty());
    EXPECT_EQ(program.to_onnx({.exporting = {.weights_are_inputs = true}}).graph().initializers().size(), 4U);
  }
}

TEST(ApiModel, CodeComesWithItsWeights) {
  const tonnx::PythonCode code = two_layers().to_python_code();
  EXPECT_NE(code.source.find("nn.Linear(4, 8)"), std::string::npos) << code.source;
  ASSERT_EQ(code.state.size(), 4U);
  EXPECT_EQ(code.state[0].name, "fc1.weight");
  EXPECT_TRUE(code.state[0].trainable);
  EXPECT_EQ(code.state[0].tensor.as<float>()[1], 0.625F);
  EXPECT_EQ(two_layers().to_python(), code.source);
}

/// A block of a Conv and a Relu, twice, with a Linear behind them, by the names that PyTorch's exporter gives.
Model blocks() {
  Model model = Model::create(17);
  tonnx::GraphEditor edit = model.edit();
  tonnx::ValueView x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {1, 2, 8, 8}));
  for (const std::string name : {"blocks.0", "blocks.1"}) {
    const auto weight = edit.add_initializer(name + ".conv.weight", floats({2, 2, 1, 1}));
    const std::string scope = "/" + name;
    x = edit.add_node("Conv", {x, weight}, {.name = scope + "/conv/Conv", .outputs = {scope + "/conv/out"}}).output();
    const auto scale = edit.add_initializer(name + ".scale", floats({2, 1, 1}));
    x = edit.add_node("Mul", {x, scale}, {.name = scope + "/Mul", .outputs = {scope + "/mul/out"}}).output();
    x = edit.add_node("Relu", {x}, {.name = scope + "/Relu", .outputs = {scope + "/relu/out"}}).output();
  }
  edit.add_output(edit.add_node("Sigmoid", {x}, {.name = "/Sigmoid", .outputs = {"y"}}).output());
  return model;
}

TEST(ApiModel, ModulesAreATree) {
  using Names = std::vector<std::string>;
  const tonnx::ModuleInfo plain = two_layers().modules();
  EXPECT_EQ(plain.path, "");
  EXPECT_EQ(plain.nodes, (Names{"/act/Relu"}));
  ASSERT_EQ(plain.children.size(), 2U);
  EXPECT_EQ(plain.children[0].path, "fc1");
  EXPECT_EQ(plain.children[0].type, "nn.Linear");
  EXPECT_EQ(plain.children[0].arguments, "4, 8");
  EXPECT_EQ(plain.children[0].keys, (Names{"fc1.weight", "fc1.bias"}));
  EXPECT_EQ(plain.children[0].nodes, (Names{"/fc1/Gemm"}));

  const tonnx::ModuleInfo model = blocks().modules();
  EXPECT_EQ(model.nodes, (Names{"/Sigmoid"}));
  ASSERT_EQ(model.children.size(), 1U);
  const tonnx::ModuleInfo& list = model.children[0];
  EXPECT_EQ(list.name, "blocks");
  EXPECT_TRUE(list.type == "nn.Sequential" || list.type == "nn.ModuleList") << list.type;
  ASSERT_EQ(list.children.size(), 2U);
  const tonnx::ModuleInfo& block = list.children[1];
  EXPECT_EQ(block.name, "1");
  EXPECT_EQ(block.path, "blocks.1");
  EXPECT_EQ(block.keys, (Names{"blocks.1.scale"}));
  EXPECT_EQ(block.nodes, (Names{"/blocks.1/Mul", "/blocks.1/Relu"}));
  ASSERT_EQ(block.children.size(), 1U);
  EXPECT_EQ(block.children[0].type, "nn.Conv2d");
  EXPECT_EQ(block.children[0].path, "blocks.1.conv");
  EXPECT_EQ(block.children[0].nodes, (Names{"/blocks.1/conv/Conv"}));
}

TEST(ApiModel, WhatAnOlderOpsetCannotSayIsAList) {
  Model model = Model::create(20);
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {1, 2, 8, 8}));
  const auto grid = edit.add_input("grid", tonnx::Type::tensor(DType::Float32, {1, 4, 4, 2}));
  for (const std::string name : {"a", "b"})
    edit.add_output(edit.add_node("GridSample", {x, grid}, {.name = name, .outputs = {name}}).output());
  edit.add_output(edit.add_node("Relu", {x}, {.name = "c", .outputs = {"c"}}).output());
  EXPECT_TRUE(model.unsupported(Format::Onnx).empty());
  EXPECT_TRUE(model.unsupported(Format::Onnx, {.opset = 16}).empty());
  const auto missing = model.unsupported(Format::Onnx, {.opset = 15});  // GridSample came with 16
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].domain, "");
  EXPECT_EQ(missing[0].op, "GridSample");
  EXPECT_EQ(missing[0].version, 20);
  EXPECT_EQ(missing[0].places, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(missing[0].why, "opset 15 does not have the operator");
  const std::vector<std::byte> bytes = model.to_bytes(Format::TorchExport);
  const Model program = Model::read(bytes, Format::TorchExport);
  EXPECT_TRUE(program.unsupported(Format::Onnx).empty());
  const auto from_program = program.unsupported(Format::Onnx, {.opset = 15});
  ASSERT_EQ(from_program.size(), 1U);
  EXPECT_EQ(from_program[0].op, "GridSample");
  EXPECT_EQ(from_program[0].places.size(), 2U);
  EXPECT_THROW(program.to_bytes(Format::Onnx, {.opset = 15}), Error);
}

TEST(ApiModel, SimplifiesAndSaysWhatWasDone) {
  Model model = two_layers();
  const tonnx::Report report = model.simplify({.input_shapes = {{"x", {3, 4}}}});
  EXPECT_EQ(report.nodes_before(), 4);
  EXPECT_EQ(report.nodes_after(), 3);
  EXPECT_EQ(ops_of(model), (std::vector<std::string>{"Gemm", "Relu", "Gemm"}));
  EXPECT_EQ(tonnx::text_of(model.graph().inputs().at(0).type()), "float32[3, 4]");
  EXPECT_EQ(tonnx::text_of(model.graph().find_value("hidden").type()), "float32[3, 8]");
  EXPECT_THROW(model.simplify({.skip = {"no_such_pass"}}), Error);
}

TEST(ApiModel, InfersShapesAndChangesTheOpset) {
  Model model = two_layers();
  const Model copy = model.clone();
  model.infer_shapes({{"x", {5, -1}}});
  EXPECT_EQ(tonnx::text_of(model.graph().find_value("fc1_out").type()), "float32[5, 8]");
  EXPECT_EQ(copy.graph().find_value("fc1_out").type().kind, tonnx::Type::Kind::Unknown);
  model.set_opset(20);
  EXPECT_EQ(model.opset(), 20);
  EXPECT_EQ(copy.opset(), 17);
  const Model back = Model::read(model.to_bytes(Format::Onnx, {.opset = 13}), Format::Onnx);
  EXPECT_EQ(back.opset(), 13);
  EXPECT_EQ(model.opset(), 20);
}

TEST(ApiModel, WhatCannotBeConvertedIsKnownBefore) {
  Model model = two_layers();
  EXPECT_TRUE(model.unsupported(Format::TorchExport).empty());
  tonnx::GraphEditor edit = model.edit();
  const auto odd = edit.add_node("Swish", {model.graph().outputs().at(0)}, {.name = "odd", .domain = "my.domain"});
  edit.add_output(odd.output());
  const auto missing = model.unsupported(Format::TorchScript);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].domain, "my.domain");
  EXPECT_EQ(missing[0].op, "Swish");
  EXPECT_EQ(missing[0].version, 1);
  EXPECT_EQ(missing[0].places, std::vector<std::string>{"odd"});
  EXPECT_TRUE(model.unsupported(Format::Onnx).empty());
  try {
    model.require_supported(Format::Python);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::Unsupported);
    EXPECT_NE(e.text().find("my.domain::Swish-1: 1 node, 'odd'"), std::string::npos) << e.text();
  }
}

TEST(ApiModel, ErrorsSayWhoMustActAndWhere) {
  const Folder folder;
  two_layers().write(folder / "m.onnx");
  std::filesystem::resize_file(folder / "m.onnx", 100);
  try {
    Model::read(folder / "m.onnx");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::BadFile);
    EXPECT_EQ(e.whiles(), std::vector<std::string>{"reading " + (folder / "m.onnx")});
    EXPECT_EQ(e.what(), e.text() + "\n  while reading " + (folder / "m.onnx"));
  }
  EXPECT_THROW(Model::read(folder / "m.txt"), Error);
  EXPECT_THROW(Model::read(std::vector<std::byte>(10), Format::Pth), Error);
  EXPECT_THROW(two_layers().write(folder / "m.tflite"), Error);
  EXPECT_THROW(two_layers().write(folder / "m.py", {.opset = 17}), Error);
}

TEST(ApiModel, ACallerCanStopAConversion) {
  const Folder folder;
  const Model model = two_layers();
  for (const char* name : {"m.onnx", "m.pt2", "m.pt", "m.py", "m.safetensors", "m.pth"}) {
    std::vector<double> told;
    model.write(folder / name, {.on_progress = [&](double done) { return told.push_back(done), true; }});
    ASSERT_GE(told.size(), 3U) << name;
    EXPECT_EQ(told.front(), 0) << name;
    EXPECT_EQ(told.back(), 1) << name;
    std::filesystem::remove_all(folder / "");
    std::filesystem::create_directories(folder / "");
    for (size_t enough = 0; enough + 1 < told.size(); ++enough) {
      size_t calls = 0;
      try {
        model.write(folder / name, {.on_progress = [&](double) { return calls++ < enough; }});
        FAIL() << name;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::Cancelled);
      }
      EXPECT_EQ(folder.file_count(), 0U) << name;
    }
  }
  const auto fail = [](double) -> bool { throw std::out_of_range("mine"); };
  EXPECT_THROW(model.write(folder / "m.pt2", {.on_progress = fail}), std::out_of_range);
}

TEST(ApiModel, WeightsThatAreComputedCanBeLookedAt) {
  Model model = Model::create(17);
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {1, 1, 8, 8}));
  const auto w = edit.add_initializer("w", tonnx::Tensor::of<float>(DType::Float32, {2, 1, 1, 1}, {3, 5}));
  const auto conv = edit.add_node("Conv", {x, w});
  const auto scale = edit.add_initializer("s", tonnx::Tensor::of<float>(DType::Float32, {2, 1, 1}, {2, 4}));
  edit.add_output(edit.add_node("Mul", {conv.output(), scale}, {.outputs = {"y"}}).output());
  edit.set_type(model.graph().outputs().at(0), tonnx::Type::tensor(DType::Float32, {1, 2, 8, 8}));
  model.simplify();
  ASSERT_EQ(ops_of(model), std::vector<std::string>{"Conv"});
  const tonnx::Tensor weight(model.graph().begin()->input(1).tensor());
  EXPECT_EQ(weight.as<float>()[0], 6);
  EXPECT_EQ(weight.as<float>()[1], 20);
}

TEST(ApiModel, OutputsAndWeightsCanBeOthers) {
  const Folder folder;
  Model model = two_layers();
  EXPECT_EQ(model.output_names(), std::vector<std::string>{"y"});
  model.set_output_names({"logits"});
  EXPECT_EQ(model.graph().outputs().at(0).name(), "logits");
  EXPECT_THROW(model.set_output_names({}), Error);
  model.check();
  Model other = two_layers();
  tonnx::GraphEditor edit = other.edit();
  const tonnx::ValueView bias = other.graph().find_value("fc2.bias");
  edit.replace_uses(bias, edit.add_initializer("new", tonnx::Tensor::of<float>(DType::Float32, {2}, {7, 8})));
  edit.remove_initializer(bias);
  edit.rename(other.graph().find_value("new"), "fc2.bias");
  other.write(folder / "w.safetensors");
  model.replace_weights(folder / "w.safetensors");
  const tonnx::Tensor taken(model.graph().find_value("fc2.bias").tensor());
  EXPECT_EQ(taken.as<float>()[1], 8);
  EXPECT_THROW(model.replace_weights(folder / "none.pth"), Error);
}

}  // namespace
