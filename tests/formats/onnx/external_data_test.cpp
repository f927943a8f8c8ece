// external_data_test.cpp - weights in a file of their own: which move, how they are found, what is refused.
#include "checks.h"
#include "formats/onnx/messages.h"

namespace tonnx::onnx {
namespace {

Model with_weights(const std::vector<int64_t>& sizes) {
  Model model = parse_model("ir_version 10 opset 17 graph g { input %x: float32[2] %y = Relu(%x) output %y }");
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<double> values(static_cast<size_t>(sizes[i]));
    for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k + i) / 8;
    model.graph->add_initializer(fmt::format("w{}", i), make_floats(DType::Float32, {sizes[i]}, values));
  }
  return model;
}

TEST(ExternalData, TensorsOfTheThresholdAndAboveMove) {
  const TempFolder folder;
  const Model model = with_weights({255, 256, 1000});
  write_onnx(model, folder / "m.onnx", {.external_data = true});
  EXPECT_EQ(folder.file_count(), 2U);
  const Model read = read_onnx(folder / "m.onnx");
  EXPECT_EQ(print_all(read), print_all(model));
  const auto& weights = read.graph->initializers();
  EXPECT_FALSE(weights[0]->constant->external);  // 1020 bytes
  EXPECT_TRUE(weights[1]->constant->external);   // 1024 bytes
  EXPECT_TRUE(weights[2]->constant->external);
  const Bytes& data = weights[2]->constant->data;
  EXPECT_EQ((data.data() - data.owner()->begin()) % 4096, 0);
  EXPECT_GE(data.owner()->fd(), 0) << "the weights are mapped, not copied";
  EXPECT_EQ(content_of(folder / "m.onnx.data").size(), 4096U + 4000U);
}

TEST(ExternalData, StaysAsItWasUnlessAsked) {
  const TempFolder folder;
  write_onnx(with_weights({1000}), folder / "in.onnx");
  EXPECT_EQ(folder.file_count(), 1U);
  write_onnx(with_weights({1000}), folder / "out.onnx", {.external_data = true});
  write_onnx(read_onnx(folder / "out.onnx"), folder / "again.onnx");
  EXPECT_EQ(content_of(folder / "again.onnx.data"), content_of(folder / "out.onnx.data"));
  const Model read = read_onnx(folder / "again.onnx");
  EXPECT_EQ(print_all(read), print_all(with_weights({1000})));
  write_onnx(read, folder / "inside.onnx", {.external_data = false});
  EXPECT_FALSE(std::filesystem::exists(folder / "inside.onnx.data"));
  EXPECT_EQ(print_all(read_onnx(folder / "inside.onnx")), print_all(read));
}

TEST(ExternalData, CanBeWrittenOverItself) {
  const TempFolder folder;
  write_onnx(with_weights({1000, 2000}), folder / "m.onnx", {.external_data = true});
  const Model read = read_onnx(folder / "m.onnx");
  write_onnx(read, folder / "m.onnx");
  EXPECT_EQ(print_all(read_onnx(folder / "m.onnx")), print_all(with_weights({1000, 2000})));
}

TEST(ExternalData, TensorsOfAttributesComeIntoTheFile) {
  const TempFolder folder;
  write_file(folder / "data", std::string("\x05\0\0\0\0\0\0\0", 8));
  const Fields tensor =
      Fields()
          .integer(tensor::dims, 1)
          .integer(tensor::data_type, 7)
          .message(tensor::external_data, Fields().text(entry::key, "location").text(entry::value, "data"))
          .integer(tensor::data_location, 1);
  const Fields attribute =
      Fields().text(attribute::name, "value").message(attribute::t, tensor).integer(attribute::type, 4);
  const Fields constant = node_of("Constant", {}, {"y"}).message(node::attribute, attribute);
  const Fields main_graph =
      Fields().message(graph::node, constant).text(graph::name, "g").message(graph::output, value_of("y", 7, {1}));
  write_file(folder / "m.onnx", model_of(main_graph).bytes());
  const Model model = read_onnx(folder / "m.onnx");
  const Model again = read_onnx(Bytes::own(write_onnx_bytes(model)));  // from memory: nothing beside it
  EXPECT_EQ(*ints_of(**again.graph->first()->attributes[0].value.get<TensorPtr>()), std::vector<int64_t>{5});
}

/// A model file whose weight of 4 floats lies where the entries say.
std::string model_with(const TempFolder& folder, const std::vector<std::pair<std::string, std::string>>& entries) {
  Fields tensor = Fields().integer(tensor::dims, 4).integer(tensor::data_type, 1).text(tensor::name, "w");
  for (const auto& [key, value] : entries) {
    tensor.message(tensor::external_data, Fields().text(entry::key, key).text(entry::value, value));
  }
  tensor.integer(tensor::data_location, 1);
  std::filesystem::create_directories(folder / "models");
  write_file(folder / "models/m.onnx", model_of(relu_graph().message(graph::initializer, tensor)).bytes());
  return folder / "models/m.onnx";
}

TEST(ExternalData, OffsetAndLength) {
  const TempFolder folder;
  const std::string path =
      model_with(folder, {{"location", "w.bin"}, {"offset", "8"}, {"length", "16"}, {"checksum", "?"}});
  const float values[] = {9, 9, 1, 2, 3, 4};
  write_file(folder / "models/w.bin", {reinterpret_cast<const char*>(values), sizeof(values)});
  EXPECT_EQ(*floats_of(*read_onnx(path).graph->initializers()[0]->constant), (std::vector<double>{1, 2, 3, 4}));
}

TEST(ExternalData, MustLieInTheFolderOfTheModel) {
  const TempFolder folder;
  write_file(folder / "w.bin", std::string(16, '\0'));
  EXPECT_ERROR(InvalidModel, "outside the folder", read_onnx(model_with(folder, {{"location", "../w.bin"}})));
  EXPECT_ERROR(InvalidModel, "absolute", read_onnx(model_with(folder, {{"location", folder / "w.bin"}})));
  EXPECT_ERROR(InvalidModel, "no location", read_onnx(model_with(folder, {})));
  EXPECT_ERROR(BadFile, "No such file", read_onnx(model_with(folder, {{"location", "missing"}})));
  std::filesystem::create_symlink("../w.bin", folder / "models/link");
  EXPECT_ERROR(InvalidModel, "outside the folder", read_onnx(model_with(folder, {{"location", "link"}})));
  const std::string path = model_with(folder, {{"location", "sub/../../models/ok"}});
  write_file(folder / "models/ok", std::string(16, '\0'));
  std::filesystem::create_directories(folder / "models/sub");
  EXPECT_NO_THROW(read_onnx(path));  // a way around that stays inside
}

TEST(ExternalData, MustBeThere) {
  const TempFolder folder;
  write_file((model_with(folder, {}), folder / "models/w.bin"), std::string(16, '\0'));
  EXPECT_ERROR(BadFile, "has 16 bytes", read_onnx(model_with(folder, {{"location", "w.bin"}, {"offset", "1"}})));
  EXPECT_ERROR(BadFile, "has 16 bytes",
               read_onnx(model_with(folder, {{"location", "w.bin"}, {"offset", "9223372036854775807"}})));
  EXPECT_ERROR(InvalidModel, "15 bytes", read_onnx(model_with(folder, {{"location", "w.bin"}, {"length", "15"}})));
  EXPECT_ERROR(InvalidModel, "the offset '-1'",
               read_onnx(model_with(folder, {{"location", "w.bin"}, {"offset", "-1"}})));
  EXPECT_ERROR(InvalidModel, "the length '1e3'",
               read_onnx(model_with(folder, {{"location", "w.bin"}, {"length", "1e3"}})));
  const Bytes bytes = Bytes::own(content_of(model_with(folder, {{"location", "w.bin"}})));
  EXPECT_ERROR(BadFile, "not read from a file", read_onnx(bytes));
  EXPECT_NO_THROW(read_onnx(bytes, folder / "models"));
}

TEST(ExternalData, AFailureLeavesNothing) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "m.onnx.data");  // the weights cannot be written
  EXPECT_ERROR(BadFile, "cannot write", write_onnx(with_weights({1000}), folder / "m.onnx", {.external_data = true}));
  EXPECT_EQ(folder.file_count(), 1U);
}

}  // namespace
}  // namespace tonnx::onnx
