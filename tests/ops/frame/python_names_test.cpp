// python_names_test.cpp - names of ONNX as names of Python.
#include "ops/frame/python_names.h"

#include "checks.h"

namespace tonnx::python {
namespace {

TEST(Names, IdentifiersAreValidPython) {
  EXPECT_EQ(identifier("conv1"), "conv1");
  EXPECT_EQ(identifier("layer1.0.conv1"), "layer1_0_conv1");
  EXPECT_EQ(identifier("/a//b/"), "a_b");
  EXPECT_EQ(identifier("1x"), "n1x");
  EXPECT_EQ(identifier("input:0"), "input_0");
  EXPECT_EQ(identifier("größe"), "gr_e");
  EXPECT_EQ(identifier(""), "");
  EXPECT_EQ(identifier("..."), "");
  for (const char* const taken : {"class", "lambda", "None", "self", "torch", "F"}) {
    EXPECT_EQ(identifier(taken), std::string(taken) + "_");
  }
}

TEST(Names, MadeUpNamesSayNothing) {
  for (const char* const name : {"", "345", "onnx::MatMul_12", "Conv_3", "val_7", "n12", "t0"})
    EXPECT_TRUE(is_made_up(name)) << name;
  for (const char* const name : {"conv1", "input", "layer1.0.conv1.weight", "/layer1/Conv", "fc_weight", "x"}) {
    EXPECT_FALSE(is_made_up(name)) << name;
  }
}

TEST(Names, PathsOfNodes) {
  EXPECT_EQ(path_of_node("/layer1/layer1.0/conv1/Conv"), "layer1.0.conv1");
  EXPECT_EQ(path_of_node("/encoder/layer.0/attention/self/query/MatMul"), "encoder.layer.0.attention.self.query");
  EXPECT_EQ(path_of_node("/Relu"), "");  // an operator of the model itself
  EXPECT_EQ(path_of_node("conv1"), "conv1");
  EXPECT_EQ(path_of_node("Conv_12"), "");
  EXPECT_EQ(path_of_node(""), "");
}

TEST(Names, PathsOfWeights) {
  EXPECT_EQ(path_of_weight("layer1.0.conv1.weight"), "layer1.0.conv1");
  EXPECT_EQ(path_of_weight("layer1.0.bn1.bias"), "layer1.0.bn1");
  EXPECT_EQ(path_of_weight("conv1_w_0"), "conv1");
  EXPECT_EQ(path_of_weight("dense/kernel:0"), "dense");
  EXPECT_EQ(path_of_weight("onnx::MatMul_345"), "");
  EXPECT_EQ(path_of_weight("table"), "table");
}

TEST(Names, SetsGiveEachNameOnce) {
  NameSet names;
  names.reserve("x");
  EXPECT_EQ(names.add("x"), "x_2");
  EXPECT_EQ(names.add("x"), "x_3");
  EXPECT_EQ(names.add("y"), "y");
  EXPECT_TRUE(names.contains("x_3"));
}

}  // namespace
}  // namespace tonnx::python
