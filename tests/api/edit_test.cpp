// edit_test.cpp - graphs built and changed through the public interface.
#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Error;
using tonnx::Format;
using tonnx::Model;

/// The text of the error that the model is refused with.
std::string fault_of(const Model& model) {
  try {
    model.check();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::InvalidModel);
    return e.text();
  }
  return "";
}

TEST(ApiEdit, ABuiltModelIsWhatWasBuilt) {
  const Model model = two_layers();
  model.check();
  const Model back = Model::read(model.to_bytes(Format::Onnx), Format::Onnx);
  EXPECT_EQ(back.text(), model.text());
  EXPECT_EQ(back.graph().inputs().size(), 1U);
  EXPECT_EQ(back.graph().initializers().size(), 4U);
}

TEST(ApiEdit, CutsAModelAtALayer) {
  Model model = two_layers();
  tonnx::GraphEditor edit = model.edit();
  edit.add_output(model.graph().find_value("hidden"));
  edit.remove_output(model.graph().find_value("y"));
  EXPECT_EQ(edit.remove_unused(), 2U);
  edit.rename(model.graph().find_value("hidden"), "features");
  const Model back = Model::read(model.to_bytes(Format::Onnx), Format::Onnx);
  EXPECT_EQ(back.graph().node_count(), 2U);
  EXPECT_EQ(back.graph().outputs().at(0).name(), "features");
  EXPECT_EQ(back.graph().initializers().size(), 2U);
}

TEST(ApiEdit, ReplacesInsertsAndRemovesNodesOfAFile) {
  Model model = Model::read(two_layers().to_bytes(Format::Onnx), Format::Onnx);
  tonnx::GraphEditor edit = model.edit();
  const tonnx::NodeView relu = model.graph().find_node("/act/Relu");
  const auto selu = edit.replace(relu, "LeakyRelu", {relu.input(0)}, {.name = "leaky", .attributes = {{"alpha", 0.1}}});
  EXPECT_EQ(selu.output().name(), "hidden");
  const tonnx::NodeView same = model.graph().find_node("/drop/Identity");
  edit.replace_uses(same.output(), selu.output());
  edit.remove(same);
  const tonnx::NodeView last = model.graph().find_node("/fc2/Gemm");
  const auto abs = edit.add_node("Abs", {last.input(0)}, {.name = "abs", .outputs = {"positive"}, .before = last});
  edit.set_input(last, 0, abs.output());
  edit.set_attribute(last, "beta", 2.0);
  edit.set_metadata(last, "note", "changed");
  EXPECT_THROW(edit.remove(abs), Error);  // its output is used
  const Model back = Model::read(model.to_bytes(Format::Onnx), Format::Onnx);
  std::vector<std::string> ops;
  for (const tonnx::NodeView& node : back.graph()) ops.emplace_back(node.op());
  EXPECT_EQ(ops, (std::vector<std::string>{"Gemm", "LeakyRelu", "Abs", "Gemm"}));
  const tonnx::NodeView gemm = back.graph().find_node("/fc2/Gemm");
  EXPECT_EQ(gemm.input(0).name(), "positive");
  EXPECT_EQ(gemm.find_attribute("beta")->as_float(), 2);
  EXPECT_EQ(gemm.metadata().at(0).second, "changed");
}

TEST(ApiEdit, RenamesInputsOutputsAndWeights) {
  Model model = Model::read(two_layers().to_bytes(Format::Onnx), Format::Onnx);
  tonnx::GraphEditor edit = model.edit();
  edit.rename(model.graph().inputs().at(0), "image");
  edit.rename(model.graph().outputs().at(0), "scores");
  edit.rename(model.graph().find_value("fc1.weight"), "encoder.weight");
  edit.set_type(model.graph().inputs().at(0), tonnx::Type::tensor(DType::Float32, {"n", 4}));
  const Model back = Model::read(model.to_bytes(Format::Onnx), Format::Onnx);
  EXPECT_EQ(back.graph().inputs().at(0).name(), "image");
  EXPECT_EQ(tonnx::text_of(back.graph().inputs().at(0).type()), "float32[n, 4]");
  EXPECT_EQ(back.graph().outputs().at(0).name(), "scores");
  EXPECT_EQ(back.graph().begin()->input(1).name(), "encoder.weight");
  EXPECT_EQ(back.graph().begin()->input(0).name(), "image");
}

TEST(ApiEdit, PutsNodesInOrder) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {2}));
  const auto last = edit.add_node("Neg", {x}, {.outputs = {"y"}});
  const auto first = edit.add_node("Abs", {x}, {.outputs = {"a"}});
  edit.set_input(last, 0, first.output());
  edit.add_output(last.output());
  EXPECT_EQ(fault_of(model), "'a' is used before it is made: sort() puts the nodes in order");
  EXPECT_THROW(model.to_bytes(Format::Onnx), Error);
  edit.sort();
  EXPECT_EQ(fault_of(model), "");
  EXPECT_EQ(model.graph().begin()->op(), "Abs");
  edit.set_input(first, 0, last.output());
  EXPECT_THROW(edit.sort(), Error);
}

TEST(ApiEdit, SaysWhatIsWrong) {
  const auto with = [](auto&& change) {
    Model model = two_layers();
    tonnx::GraphEditor edit = model.edit();
    change(model, edit);
    return fault_of(model);
  };
  EXPECT_EQ(with([](Model&, auto& edit) { edit.add_input("hidden", {}); }), "the name 'hidden' is given to two values");
  EXPECT_EQ(with([](Model&, auto& edit) { edit.add_node("Relux", {}); }), "there is no operator 'Relux' in ONNX");
  EXPECT_EQ(with([](Model& model, auto& edit) { edit.add_node("Gelu", {model.graph().inputs().at(0)}); }),
            "opset 17 has no operator 'Gelu'");
  EXPECT_EQ(with([](Model& model, auto& edit) { edit.set_attribute(*model.graph().begin(), "transC", 1); }),
            "Gemm has no attribute 'transC'");
  EXPECT_EQ(with([](Model& model, auto& edit) { edit.set_input(*model.graph().begin(), 1, {}); }),
            "input 'B' is missing");
  EXPECT_EQ(with([](Model& model, auto& edit) {
              const tonnx::NodeView first = *model.graph().begin();
              edit.set_input(first, 0, first.output());
            }),
            "the node takes its own output 'fc1_out'");
}

TEST(ApiEdit, BranchesAreGraphsInsideNodes) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {2}));
  const auto flag = edit.add_input("flag", tonnx::Type::tensor(DType::Bool, {}));
  const auto node = edit.add_node("If", {flag}, {.outputs = {"y"}});
  for (const auto& [attribute, op] : {std::pair("then_branch", "Neg"), std::pair("else_branch", "Abs")}) {
    tonnx::GraphEditor branch = edit.add_graph(node, attribute);
    branch.add_output(branch.add_node(op, {x}, {.outputs = {std::string(op) + "_y"}}).output());
  }
  edit.add_output(node.output());
  model.check();
  Model back = Model::read(model.to_bytes(Format::Onnx), Format::Onnx);
  ASSERT_EQ(back.graph().begin()->subgraphs().size(), 2U);
  EXPECT_EQ(back.graph().begin()->subgraphs()[1].begin()->op(), "Abs");
  EXPECT_EQ(back.node_count(), 3U);
  tonnx::GraphEditor inner = back.edit().edit(*back.graph().begin()->find_attribute("else_branch"));
  inner.replace(*inner.graph().begin(), "Relu", {back.graph().inputs().at(0)});
  const Model again = Model::read(back.to_bytes(Format::Onnx), Format::Onnx);
  EXPECT_EQ(again.graph().begin()->subgraphs()[1].begin()->op(), "Relu");
}

TEST(ApiEdit, TensorsBorrowTheirBytes) {
  static int released = 0;
  released = 0;
  const float values[] = {1, 2, 3, 4};
  {
    Model model = Model::create();
    {
      const auto tensor = tonnx::Tensor::borrow(DType::Float32, {4}, std::as_bytes(std::span(values)), nullptr,
                                                [](void*) { ++released; });
      tonnx::GraphEditor edit = model.edit();
      edit.add_output(edit.add_initializer("w", tensor));
    }
    EXPECT_EQ(released, 0);
    EXPECT_EQ(model.graph().initializers().at(0).tensor().bytes().data(), std::as_bytes(std::span(values)).data());
    const Model copy = model.clone();
    model = Model::create();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_THROW(tonnx::Tensor::of<float>(DType::Float32, {3}, {1, 2}), Error);
}

}  // namespace
