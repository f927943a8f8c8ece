// module_tree_test.cpp - what belongs to a model: its submodules, parameters and buffers, and their names.
#include "modules/module_tree.h"

#include "checks.h"

namespace tonnx {
namespace {

/// Two calls of one layer, and a constant without a name.
Model sample() {
  Model model = parse_model(R"(ir_version 10 opset 17 graph g {
    input %x: float32[2, 2]
    const %body.fc.weight: float32[2, 2]{1.0, 2.0, 3.0, 4.0}
    const %body.fc.bias: float32[2]{1.0, 2.0}
    const %onnx::Add_12: float32[2]{1.0, 2.0}
    %a: float32[2, 2] = aten::linear(input=%x, weight=%body.fc.weight, bias=%body.fc.bias) "/body/fc/Gemm"
    %b: float32[2, 2] = aten::linear(input=%a, weight=%body.fc.weight, bias=%body.fc.bias) "/body/fc/Gemm_1"
    %c: float32[2, 2] = aten::add.Tensor(self=%b, other=%onnx::Add_12) "/head/Add"
    %d: float32[2, 2] = aten::relu(self=%c) "/head/relu/Relu"
    output %d
  })");
  for (Value* value : model.graph->initializers()) value->trainable = value->name != "onnx::Add_12";
  return model;
}

TEST(ModuleTree, OneModuleForCallsWithTheSameWeights) {
  const Model model = sample();
  const ModuleTree tree = find_module_tree(*model.graph);
  ASSERT_EQ(tree.submodules.size(), 1U);
  const Submodule& layer = tree.submodules[0];
  EXPECT_EQ(layer.name, "body.fc");
  EXPECT_EQ(layer.spec.type, "nn.Linear");
  EXPECT_TRUE(layer.spec.weights.empty());
  const Node* first = model.graph->first();
  EXPECT_EQ(tree.submodule_of.at(first), 0U);
  EXPECT_EQ(tree.submodule_of.at(first->next), 0U);
  EXPECT_EQ(tree.submodule_of.size(), 2U);
}

TEST(ModuleTree, StateHasTheNamesOfTheStateDict) {
  const Model model = sample();
  const ModuleTree tree = find_module_tree(*model.graph);
  const std::vector<StateEntry> state = state_of(tree);
  ASSERT_EQ(state.size(), 3U);
  EXPECT_EQ(state[0].name, "head_constant");  // after the place where it is used
  EXPECT_FALSE(state[0].trainable);
  EXPECT_EQ(state[0].value, model.graph->initializers()[2]);
  EXPECT_EQ(state[1].name, "body.fc.weight");
  EXPECT_TRUE(state[1].trainable);
  EXPECT_EQ(state[2].name, "body.fc.bias");
  EXPECT_EQ(tree.submodules[0].state[1].name, "bias");
}

TEST(ModuleTree, FlatNamesAreAttributesOfTheModel) {
  const Model model = sample();
  const ModuleTree tree = find_module_tree(*model.graph, TreeNames::Flat);
  EXPECT_EQ(tree.submodules[0].name, "body_fc");
  EXPECT_EQ(tree.tensors[0].name, "head_constant");
}

TEST(ModuleTree, AWeightBelongsToOneModule) {
  Model model = sample();
  Node* second = model.graph->first()->next;
  second->take_attribute("bias");
  second->resize_inputs(2);
  const ModuleTree tree = find_module_tree(*model.graph);
  EXPECT_EQ(tree.submodules.size(), 1U);
  EXPECT_FALSE(tree.submodule_of.contains(second));  // the function is called with the weight of the other
}

TEST(ModuleTree, GeneratorsAreNoState) {
  const Model model = sample();
  Value* seed = model.graph->initializers()[2];
  seed->type.kind = Type::Kind::Opaque;
  const ModuleTree tree = find_module_tree(*model.graph);
  ASSERT_EQ(tree.tensors.size(), 1U);
  EXPECT_TRUE(is_generator(tree.tensors[0]));
  EXPECT_EQ(state_of(tree).size(), 2U);
}

}  // namespace
}  // namespace tonnx
