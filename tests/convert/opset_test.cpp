// opset_test.cpp - models brought to other opsets; what each version means is from the standard's changelog.
#include "convert/opset.h"

#include "checks.h"
#include "convert/inference.h"
#include "formats/onnx/onnx.h"

namespace tonnx {
namespace {

/// One graph of these lines, at an opset.
Model model_at(int64_t opset, const std::string& lines) {
  return parse_model(fmt::format("ir_version 3 opset {} graph g {{ {} }}", opset, lines));
}

/// The lines of the graph after the change.
std::string changed(int64_t from, int64_t to, const std::string& lines) {
  Model model = model_at(from, lines);
  change_opset(model, to);
  check_invariants(*model.graph);
  EXPECT_EQ(model.opset(""), to);
  for (const Node& node : *model.graph) EXPECT_EQ(node.version, to) << node.op.view();
  const std::string text = print(model);
  const size_t start = text.find("{\n") + 2;
  return text.substr(start, text.rfind('}') - start);
}

std::string lines_of(int64_t opset, const std::string& lines) { return changed(opset, opset, lines); }

TEST(ChangeOpset, AnAttributeThatMeantNothingGoes) {
  EXPECT_EQ(changed(1, 6, "input %x: float32[2] %y = Relu(%x) {consumed_inputs=[0]} output %y"),
            lines_of(6, "input %x: float32[2] %y = Relu(%x) output %y"));
}

TEST(ChangeOpset, AnAttributeBecomesAnInputAndBack) {
  const std::string old_form = "input %x: float32[1, 2] %y = Squeeze(%x) {axes=[0]} output %y";
  const std::string up = changed(12, 13, old_form);
  EXPECT_EQ(up, lines_of(13, "input %x: float32[1, 2] const %y_axes: int64[1]{0} %y = Squeeze(%x, %y_axes) output %y"));
  Model model = model_at(12, old_form);
  change_opset(model, 17);
  change_opset(model, 11);
  EXPECT_EQ(find_node(*model.graph, "Squeeze")->inputs().size(), 1U);
  EXPECT_EQ(*find_node(*model.graph, "Squeeze")->find_attribute("axes")->value.get<std::vector<int64_t>>(),
            std::vector<int64_t>{0});
}

TEST(ChangeOpset, NodesThatDidNotChangeKeepTheirBytes) {
  const std::string bytes = write_onnx_bytes(model_at(
      12,
      "input %x: float32[1, 2] %a = Squeeze(%x) {axes=[0]} \"s\" %y = Abs(%a) \"abs\" %z = Conv(%x, %x) output %y"));
  Model model = read_onnx(Bytes::own(bytes));
  const std::string before(find_node(*model.graph, "Conv")->source.view());
  change_opset(model, 13);
  EXPECT_FALSE(find_node(*model.graph, "Abs")->source.empty());
  EXPECT_TRUE(find_node(*model.graph, "Squeeze")->source.empty());
  const Model after = read_onnx(Bytes::own(write_onnx_bytes(model)));
  EXPECT_EQ(find_node(*after.graph, "Conv")->source.view(), before);
  EXPECT_EQ(after.opset(""), 13);
}

TEST(ChangeOpset, SoftmaxOfOneAxis) {
  // before 13 Softmax flattens all dimensions from the axis on; with the last axis both mean the same
  const std::string up = changed(12, 13, "input %x: float32[2, 3] %y = Softmax(%x) {axis=1} output %y");
  EXPECT_EQ(up.find("Flatten"), std::string::npos);
  Model model = model_at(12, "input %x: float32[2, 3, 4] %y = Softmax(%x) output %y");
  change_opset(model, 13);
  check_invariants(*model.graph);
  EXPECT_GT(model.graph->node_count(), 1U);  // axis 1 of three: the shape is changed around it
}

TEST(ChangeOpset, LegacyBroadcast) {
  const std::string up =
      changed(6, 7, "input %a: float32[2, 3, 4] input %b: float32[3] %y = Add(%a, %b) {broadcast=1, axis=1} output %y");
  EXPECT_EQ(up.find("broadcast"), std::string::npos);
  EXPECT_NE(up.find("Unsqueeze"), std::string::npos);
  EXPECT_EQ(changed(6, 7, "input %a: float32[2, 3] input %b: float32[3] %y = Add(%a, %b) {broadcast=1} output %y"),
            lines_of(7, "input %a: float32[2, 3] input %b: float32[3] %y = Add(%a, %b) output %y"));
}

TEST(ChangeOpset, SaysAllThatStandsInTheWay) {
  Model model = model_at(17,
                         "input %x: bfloat16[2, 3] input %i: float32[2] %a = Relu(%x) \"first\" "
                         "%b = GridSample(%x, %x) \"second\" %c = NoSuchOperator(%i) \"third\" output %a");
  const std::string before = print(model);
  const Error e = error_of([&] { change_opset(model, 12); });
  EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
  const std::string text = e.what();
  EXPECT_NE(text.find("from opset 17 to 12"), std::string::npos) << text;
  for (const char* const part : {"'first'", "bfloat16", "'second'", "does not have the operator", "'third'"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(ChangeOpset, GoesIntoSubgraphs) {
  Model model = model_at(12, R"(input %x: float32[1, 2]
    %y = com.x.Run() { body=graph t { %a = Squeeze(%x) {axes=[0]} output %a } } output %y)");
  change_opset(model, 13);
  check_invariants(*model.graph);
  const Node* inner = subgraphs_of(*model.graph->first())[0]->first();
  EXPECT_EQ(inner->version, 13);
  EXPECT_EQ(inner->inputs().size(), 2U);
}

TEST(ChangeOpset, OtherDomainsStay) {
  Model model = parse_model("opset 12 opset com.x 3 graph g { input %x: float32[2] %y = com.x.Foo(%x) output %y }");
  change_opset(model, 17);
  EXPECT_EQ(model.graph->first()->version, 3);
  EXPECT_EQ(model.opset("com.x"), 3);
}

TEST(ChangeOpset, KnowsItsLimits) {
  Model model = model_at(17, "input %x: float32[2] %y = Relu(%x) output %y");
  EXPECT_ERROR(Unsupported, "opset 29 is not known", change_opset(model, 29));
  EXPECT_ERROR(Unsupported, "opset 0 is not known", change_opset(model, 0));
  change_opset(model, 21);
  EXPECT_EQ(model.ir_version, 10);  // the least that has opset 21
}

TEST(Upgrade, InfersShapesOnTheWay) {
  Model model = model_at(
      6,
      "input %a: float32[n, 3, ?] input %b: float32[3] %y = Add(%a, %b) {broadcast=1, axis=1} %z = Relu(%y) output %z");
  upgrade_and_infer(*model.graph);
  check_invariants(*model.graph);
  EXPECT_EQ(text_of(model.graph->outputs()[0]->type), "float32[n, 3, a_dim2]");
}

TEST(Upgrade, SizesThatContradictAreRefused) {
  Model model = model_at(17, "input %a: float32[2, 3] input %b: float32[2, 4] %y = Add(%a, %b) \"sum\" output %y");
  EXPECT_ERROR(InvalidModel, "node 'sum' (Add-14)", upgrade_and_infer(*model.graph));
}

}  // namespace
}  // namespace tonnx
