// module_test.cpp - modules in memory: their code, their weights, and modules of the caller's in the place of nodes.
#include <tonnx/module.h>
#include <tonnx/tools.h>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Error;
using tonnx::Model;
using tonnx::ModuleConversion;
using tonnx::Tensor;

tonnx::ModuleCode code_of(Model model, const tonnx::ModuleCodeOptions& options) {
  ModuleConversion conversion(std::move(model));
  if (!options.mapped) conversion.begin_copies();
  conversion.prepare();
  conversion.lower();
  tonnx::ModuleCode code = conversion.code(options);
  code.copies.wait();
  return code;
}

TEST(ApiModule, WeightsAreViewsOfTheFileOrInMemoryOfTheirOwn) {
  const Folder folder;
  two_layers().write(folder / "m.onnx");
  for (const bool mapped : {false, true}) {
    const Model read = Model::read(folder / "m.onnx");
    const tonnx::ModuleCode code = code_of(read.clone(), {.title = "mine", .mapped = mapped});
    EXPECT_NE(code.source.find("nn.Linear(4, 8)"), std::string::npos) << code.source;
    ASSERT_EQ(code.state.size(), 4U);
    for (const tonnx::ModuleWeight& weight : code.state) {
      const tonnx::ValueView value = read.graph().find_value(weight.name);
      ASSERT_TRUE(value) << weight.name;
      const auto file = value.tensor().bytes();
      const auto bytes = weight.tensor.bytes();
      EXPECT_TRUE(std::equal(file.begin(), file.end(), bytes.begin(), bytes.end())) << weight.name;
      EXPECT_EQ(file.data() == bytes.data(), mapped) << weight.name;
      EXPECT_TRUE(weight.trainable);
    }
  }
}

TEST(ApiModule, BytesThatWereGivenAwayAreNotCopied) {
  auto* bytes = new std::vector<std::byte>(two_layers().to_bytes(tonnx::Format::Onnx));
  const auto first = bytes->data(), last = first + bytes->size();
  static bool is_released;
  is_released = false;
  {
    const Tensor given =
        Tensor::adopt(DType::UInt8, {static_cast<int64_t>(bytes->size())}, *bytes, bytes, [](void* kept) {
          delete static_cast<std::vector<std::byte>*>(kept);
          is_released = true;
        });
    const tonnx::ModuleCode code = code_of(Model::read(given, tonnx::Format::Onnx), {});
    ASSERT_EQ(code.state.size(), 4U);
    for (const tonnx::ModuleWeight& weight : code.state)
      EXPECT_TRUE(weight.tensor.bytes().data() >= first && weight.tensor.bytes().data() < last) << weight.name;
  }
  EXPECT_TRUE(is_released);
}

TEST(ApiModule, ProgramsBecomeModulesToo) {
  const std::vector<std::byte> bytes = two_layers().to_bytes(tonnx::Format::TorchExport);
  const tonnx::ModuleCode code = code_of(Model::read(bytes, tonnx::Format::TorchExport), {});
  EXPECT_NE(code.source.find("nn.Linear(4, 8)"), std::string::npos) << code.source;
  EXPECT_EQ(code.state.size(), 4U);
}

/// two_layers() and a node of an operator that nobody knows behind it.
Model with_swish() {
  Model model = two_layers();
  tonnx::GraphEditor edit = model.edit();
  const tonnx::ValueView y = model.graph().outputs().at(0);
  const auto odd = edit.add_node("Swish", {y}, {.name = "odd", .domain = "my.domain", .outputs = {"z"}});
  edit.set_type(odd.output(), y.type());
  edit.remove_output(y);
  edit.add_output(odd.output());
  return model;
}

TEST(ApiModule, ModulesOfTheCallersStandForNodes) {
  const std::vector<tonnx::ExternalOp> external{{"my.domain", "Swish", 1}};
  ModuleConversion conversion(with_swish());
  EXPECT_FALSE(conversion.has_external({{"my.domain", "Swish", 2}}));
  EXPECT_TRUE(conversion.has_external(external));
  EXPECT_EQ(conversion.unsupported({}).size(), 1U);
  EXPECT_TRUE(conversion.unsupported(external).empty());
  conversion.prepare(external);
  ASSERT_EQ(conversion.external_nodes().size(), 1U);
  EXPECT_EQ(conversion.external_nodes()[0].name(), "odd");
  EXPECT_THROW(conversion.lower({{}, {}}), Error);  // two calls, and one node
  conversion.lower({{{"y"}, {"z"}}});
  EXPECT_THROW(conversion.code(), Error);  // no module is given
  const tonnx::ModuleWeight beta{"beta", floats({2}), false, true};
  tonnx::ModuleCode code = conversion.code({}, {{beta}});
  code.copies.wait();
  EXPECT_NE(code.source.find("EXTERNAL"), std::string::npos) << code.source;
  EXPECT_EQ(code.state.size(), 4U);  // those of the module are the caller's

  const Folder folder;
  ModuleConversion other(with_swish());
  other.prepare(external);
  other.lower();
  other.write(folder / "m.py", {{"from mine import Swish", "Swish(beta=0.5)", {beta}}});
  const std::string source = tonnx::read_text(folder / "m.py");
  EXPECT_NE(source.find("from mine import Swish"), std::string::npos) << source;
  EXPECT_NE(source.find("Swish(beta=0.5)"), std::string::npos);
  const auto weights = tonnx::read_weights(folder / "m.safetensors");
  ASSERT_EQ(weights.size(), 5U);
  tonnx::write_module(folder / "again.py", code.source, {{"from mine import Swish", "Swish(beta=0.5)", {}}},
                      code.state);
  EXPECT_NE(tonnx::read_text(folder / "again.py").find("Swish(beta=0.5)"), std::string::npos);
  EXPECT_EQ(tonnx::read_weights(folder / "again.safetensors").size(), 4U);
}

TEST(ApiModule, StepsHaveAnOrder) {
  ModuleConversion conversion(two_layers());
  EXPECT_THROW(conversion.lower(), Error);
  EXPECT_THROW(conversion.code(), Error);
  conversion.prepare();
  EXPECT_THROW(conversion.prepare(), Error);
  conversion.lower();
  conversion.code();
  EXPECT_THROW(conversion.code(), Error);
  EXPECT_THROW(conversion.write("m.py"), Error);
}

TEST(ApiModule, ElementsSmallerThanAByteAreWidened) {
  Model model = Model::create(21);
  tonnx::GraphEditor edit = model.edit();
  const std::vector<std::byte> packed{std::byte{0x21}, std::byte{0xF3}};
  const auto value = edit.add_initializer("w", Tensor(DType::Int4, {3}, packed));
  const Tensor wide = tonnx::widened(value.tensor());
  EXPECT_EQ(wide.dtype(), DType::Int8);
  EXPECT_EQ(std::vector<int8_t>(wide.as<int8_t>().begin(), wide.as<int8_t>().end()), (std::vector<int8_t>{1, 2, 3}));
  EXPECT_EQ(tonnx::dense_value(value).dtype(), DType::Int4);
  EXPECT_EQ(tonnx::torch_name_of(DType::Float8E4M3FN), "float8_e4m3fn");
  EXPECT_EQ(tonnx::find_torch_dtype("bfloat16"), DType::BFloat16);
  EXPECT_FALSE(tonnx::find_torch_dtype(""));
}

}  // namespace
