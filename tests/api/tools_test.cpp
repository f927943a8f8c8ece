// tools_test.cpp - lists, texts and files of the interface.
#include <tonnx/tools.h>

#include <algorithm>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::Error;
using tonnx::Format;

TEST(ApiTools, ListsWhatThereIs) {
  const auto operators = tonnx::onnx_operators();
  const auto conv = std::find_if(operators.begin(), operators.end(), [](const auto& op) { return op.name == "Conv"; });
  ASSERT_NE(conv, operators.end());
  EXPECT_TRUE(conv->is_supported);
  EXPECT_EQ(conv->versions, (std::vector<int>{1, 11, 22}));  // by the standard
  const auto aten = tonnx::aten_operators();
  EXPECT_TRUE(std::any_of(aten.begin(), aten.end(), [](const auto& op) { return op.name == "aten::add.Tensor"; }));
  const auto passes = tonnx::simplify_passes();
  for (const char* name : {"fold_constants", "inline_if", "eliminate_dead_code", "fuse_bn"})
    EXPECT_TRUE(std::any_of(passes.begin(), passes.end(), [&](const auto& pass) { return pass.name == name; })) << name;
}

TEST(ApiTools, LimitsAreSharedWhileAScopeIsThere) {
  const std::vector<std::byte> bytes = two_layers().to_bytes(Format::Onnx);
  const tonnx::LimitScope scope({{"nodes", 40}});
  try {
    for (int i = 0; i < 10; ++i) tonnx::Model::read(bytes, Format::Onnx);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::Unsupported);
  }
  EXPECT_THROW(tonnx::LimitScope({{"cookies", 1}}), Error);
}

TEST(ApiTools, LimitsOfAModelAreForAllThatIsDoneWithIt) {
  const std::vector<std::byte> bytes = two_layers().to_bytes(Format::Onnx);
  const tonnx::Model model = tonnx::Model::read(bytes, Format::Onnx, {.limits = {{"nodes", 20}}});
  EXPECT_THROW(model.to_python(), Error);
  EXPECT_THROW(tonnx::Model::read(bytes, Format::Onnx, {.limits = {{"nodes", 3}}}), Error);
}

TEST(ApiTools, ReadsTexts) {
  const tonnx::DynamicDim dim = tonnx::parse_dynamic("x:0=batch:1..64").at(0);
  EXPECT_EQ(dim.input, "x");
  EXPECT_EQ(dim.high, 64);
  EXPECT_EQ(tonnx::parse_bytes("1.5KB"), 1536);
  EXPECT_EQ(tonnx::parse_limit("memory=1G"), (std::pair<std::string, int64_t>("memory", int64_t{1} << 30)));
  EXPECT_THROW(tonnx::parse_limit("memory"), Error);
  EXPECT_EQ(tonnx::shown("a\x1b[2J"), "a\\x1b[2J");
  EXPECT_EQ(tonnx::did_you_mean("convrt", {"convert", "check"}), "; did you mean 'convert'?");
  EXPECT_EQ(tonnx::find_format("a/b.PT2"), Format::TorchExport);
  EXPECT_EQ(tonnx::find_format("b.zip"), std::nullopt);
}

TEST(ApiTools, FilesAreWhatTheyAre) {
  const Folder folder;
  tonnx::write_text(folder / "a.txt", "hello\n");
  EXPECT_EQ(tonnx::read_text(folder / "a.txt"), "hello\n");
  two_layers().write(folder / "m.pt2");
  std::filesystem::copy(folder / "m.pt2", folder / "m.onnx");
  EXPECT_THROW(tonnx::require_content(folder / "m.onnx", Format::Onnx), Error);
  EXPECT_THROW(tonnx::Model::read(folder / "m.onnx"), Error);
  EXPECT_EQ(tonnx::require_route(folder / "m.pt2", "m.py"), Format::TorchExport);
  EXPECT_THROW(tonnx::require_route(folder / "m.pt2", "m.py", {.write = {.opset = 17}}), Error);
  two_layers().write(folder / "m.safetensors");
  EXPECT_NE(tonnx::print_weights(folder / "m.safetensors").find("fc1.weight: float32[8, 4]"), std::string::npos);
  const auto weights = tonnx::read_weights(folder / "m.safetensors");
  ASSERT_EQ(weights.size(), 4U);
  EXPECT_EQ(weights[0].tensor.as<float>()[1], 0.625F);
  tonnx::write_vetted_copy(folder / "m.pt2", folder / "copy.pt2");
  EXPECT_EQ(tonnx::Model::read(folder / "copy.pt2").node_count(), tonnx::Model::read(folder / "m.pt2").node_count());
}

TEST(ApiTools, VersionsAreThoseOfTheStandard) {
  EXPECT_EQ(tonnx::standard_versions("Relu"), (std::vector<int>{1, 6, 13, 14}));
  EXPECT_TRUE(tonnx::standard_versions("Swoosh").empty());
  EXPECT_EQ(tonnx::schema_version("Relu", 12), 6);
  EXPECT_EQ(tonnx::schema_version("Relu", 20), 14);
  EXPECT_EQ(tonnx::schema_version("Gelu", 19), 0);  // it came with 20
}

TEST(ApiTools, OptionsThatMeanNothingOnARouteAreRefused) {
  tonnx::require_options("m.onnx", "m.onnx", {"opset", "external_data", "dynamic"});
  tonnx::require_options("m.onnx", "", {"mmap", "flat"});  // a module in memory
  EXPECT_THROW(tonnx::require_options("m.onnx", "m.py", {"opset"}), tonnx::Error);
  EXPECT_THROW(tonnx::require_options("m.onnx", "m.py", {"no_such_option"}), tonnx::Error);
  EXPECT_EQ(tonnx::texts_of({{"x", {1, -1, 224}}, {"y", {}}}), (std::vector<std::string>{"x:1,?,224", "y:"}));
}

}  // namespace
