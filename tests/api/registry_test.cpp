// registry_test.cpp - operators of a program's own, in both directions.
#include <stdexcept>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Error;
using tonnx::Format;
using tonnx::Model;
using tonnx::ValueView;

/// x [2, 3] -> my.domain.Swish(beta) -> Softmax -> y; Softmax needs the rank of what comes before it.
Model with_swish(double beta) {
  Model model = Model::create(17);
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {2, 3}));
  tonnx::NodeOptions options{.name = "swish", .domain = "my.domain"};
  if (beta != 1) options.attributes = {{"beta", beta}};
  const auto swish = edit.add_node("Swish", {x}, options);
  const auto softmax = edit.add_node("Softmax", {swish.output()}, {.outputs = {"y"}, .attributes = {{"axis", -1}}});
  edit.add_output(softmax.output());
  edit.set_type(softmax.output(), tonnx::Type::tensor(DType::Float32, {2, 3}));
  return model;
}

tonnx::Registry swish_to_aten() {
  tonnx::Registry registry;
  registry.add_onnx(
      "my.domain::Swish(T x, *, float beta=1.0) -> T y",
      [](const tonnx::OnnxNode& n, tonnx::AtenBuilder& aten) {
        const ValueView x = n.input("x");
        const ValueView scaled = n.f("beta") == 1 ? x : aten("mul.Tensor", {x, n.f("beta")});
        return aten("mul.Tensor", {x, aten("sigmoid", {scaled})});
      },
      "x");
  return registry;
}

TEST(ApiRegistry, ANodeOfAnotherDomainBecomesCallsOfPyTorch) {
  const tonnx::Registry registry = swish_to_aten();
  const Model model = with_swish(2.5);
  EXPECT_EQ(model.unsupported(Format::Python).size(), 1U);
  EXPECT_TRUE(model.unsupported(Format::Python, {.registry = &registry}).empty());
  EXPECT_THROW(model.to_python(), Error);
  const std::string code = model.to_python({.registry = &registry});
  EXPECT_NE(code.find("torch.sigmoid(x * 2.5)"), std::string::npos) << code;
  // what PyTorch has one function for is that one, as in any other model
  EXPECT_NE(with_swish(1).to_python({.registry = &registry}).find("F.silu(x)"), std::string::npos);
  const Folder folder;
  model.write(folder / "m.onnx");
  tonnx::convert(folder / "m.onnx", folder / "m.pt2", {.write = {.registry = &registry}});
  EXPECT_EQ(bytes_of_file(folder / "m.pt2"), model.to_bytes(Format::TorchExport, {.registry = &registry}));
  EXPECT_EQ(model.to_bytes(Format::TorchScript, {.registry = &registry}).empty(), false);
}

TEST(ApiRegistry, MistakesAreErrors) {
  tonnx::Registry registry = swish_to_aten();
  const auto nothing = [](const tonnx::OnnxNode& n, tonnx::AtenBuilder&) { return n.input("x"); };
  EXPECT_THROW(registry.add_onnx("my.domain::Swish(T x) -> T y", nothing), Error);  // is there already
  EXPECT_THROW(registry.add_onnx("my.domain::Other(T x", nothing), Error);
  EXPECT_THROW(registry.add_onnx("my.domain::Other(T x) -> T y", nothing, "z"), Error);
  const auto with = [](auto&& lower) {
    tonnx::Registry other;
    other.add_onnx("my.domain::Swish(T x, *, float beta=1.0) -> T y", lower);
    return with_swish(2).to_python({.registry = &other});
  };
  try {
    with([](const tonnx::OnnxNode& n, tonnx::AtenBuilder& aten) { return aten("no_such", {n.input("x")}); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::Unsupported);
    EXPECT_EQ(e.text(), "there is no operator 'aten::no_such' to call");
    EXPECT_EQ(e.whiles().at(0), "lowering node 'swish' (my.domain::Swish-1)");
  }
  EXPECT_THROW(with([](const tonnx::OnnxNode&, tonnx::AtenBuilder&) -> ValueView { throw std::out_of_range("mine"); }),
               std::out_of_range);
  EXPECT_THROW(with([](const tonnx::OnnxNode& n, tonnx::AtenBuilder&) { return n.input("no_such"); }), Error);
  EXPECT_THROW(with([](const tonnx::OnnxNode& n, tonnx::AtenBuilder& aten) {
                 return aten("mul.Tensor", {n.input("x"), 1, 2, 3});
               }),
               Error);
}

/// A program that calls aten::sigmoid; the registry takes that operator over.
TEST(ApiRegistry, AnOperatorOfPyTorchBecomesNodesOfOnnx) {
  Model model = Model::create(17);
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {2, 3}));
  edit.add_output(edit.add_node("Elu", {x}, {.outputs = {"y"}, .attributes = {{"alpha", 0.25}}}).output());
  edit.set_type(model.graph().outputs().at(0), tonnx::Type::tensor(DType::Float32, {2, 3}));
  const Model program = Model::read(model.to_bytes(Format::TorchExport), Format::TorchExport);
  ASSERT_EQ(program.graph().begin()->op(), "elu");
  tonnx::Registry registry;
  registry.add_aten("aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
                    [](const tonnx::AtenNode& n, tonnx::OnnxBuilder& onnx) {
                      EXPECT_EQ(tonnx::text_of(n.type("self")), "float32[2, 3]");
                      return onnx("my.domain.Elu", {n.input("self"), onnx.number(DType::Float32, n.f("alpha"))},
                                  {{"scale", n.f("scale")}});
                    });
  const Model onnx = program.to_onnx({.registry = &registry});
  const tonnx::NodeView node = *onnx.graph().begin();
  EXPECT_EQ(node.domain(), "my.domain");
  EXPECT_EQ(node.op(), "Elu");
  EXPECT_EQ(node.find_attribute("scale")->as_float(), 1);
  EXPECT_EQ(*reinterpret_cast<const float*>(node.input(1).tensor().bytes().data()), 0.25F);
  EXPECT_EQ(onnx.opset("my.domain"), 1);
  EXPECT_THROW(registry.add_aten("swish(Tensor x) -> Tensor", {}), Error);
}

}  // namespace
