// graph_test.cpp - edits of graphs keep nodes, values and uses in step.
#include "ir/graph.h"

#include "checks.h"

namespace tonnx {
namespace {

std::string body_of(const Graph& graph) {
  check_invariants(graph);
  return print(graph);
}

Model two_relus() {
  return parse_model(R"(opset 17 graph g {
    input %x: float32[2]
    %a = Relu(%x)
    %b = Relu(%a)
    output %b
  })");
}

TEST(Graph, SetInputMovesTheUse) {
  const Model model = two_relus();
  Value* x = model.graph->inputs()[0];
  Node* last = model.graph->last();
  Value* a = last->input(0);
  last->set_input(0, x);
  EXPECT_TRUE(a->uses.empty());
  EXPECT_EQ(x->uses.size(), 2U);
  check_invariants(*model.graph);
  last->set_input(3, a);  // in between: absent
  EXPECT_EQ(last->inputs().size(), 4U);
  EXPECT_EQ(last->input(2), nullptr);
  check_invariants(*model.graph);
  last->resize_inputs(1);
  EXPECT_TRUE(a->uses.empty());
  check_invariants(*model.graph);
}

TEST(Graph, AddNodeBeforeAnother) {
  const Model model = two_relus();
  Graph& graph = *model.graph;
  Node* last = graph.last();
  Node* made = graph.add_node("", "Neg", last);
  made->add_input(last->input(0));
  last->set_input(0, graph.add_output_to(made, graph.unique_name("a")));
  check_invariants(graph);
  EXPECT_EQ(graph.node_count(), 3U);
  EXPECT_EQ(last->input(0)->name, "a_2");
  EXPECT_EQ(last->previous, made);
  Node* first = graph.add_node("", "Neg", graph.first());
  EXPECT_EQ(graph.first(), first);
  check_invariants(graph);
}

TEST(Graph, EraseUnlinksTheNode) {
  const Model model = two_relus();
  Graph& graph = *model.graph;
  EXPECT_ERROR(Internal, "in use", graph.erase(graph.first()));
  graph.set_output(0, graph.inputs()[0]);
  graph.erase(graph.last());
  graph.erase(graph.last());
  EXPECT_EQ(graph.node_count(), 0U);
  EXPECT_EQ(graph.first(), nullptr);
  EXPECT_EQ(graph.inputs()[0]->uses.size(), 1U);
  check_invariants(graph);
}

TEST(Graph, ReplaceUsesReachesOutputs) {
  const Model model = two_relus();
  Graph& graph = *model.graph;
  graph.replace_uses(graph.outputs()[0], graph.inputs()[0]);
  EXPECT_EQ(graph.outputs()[0], graph.inputs()[0]);
  check_invariants(graph);
}

TEST(Graph, MoveOutputKeepsNameAndUses) {
  const Model model = two_relus();
  Graph& graph = *model.graph;
  Value* b = graph.outputs()[0];
  Node* old_producer = b->producer;
  Node* made = graph.add_node("", "Neg");
  made->add_input(graph.inputs()[0]);
  graph.move_output(b, made, 0);
  EXPECT_EQ(old_producer->output(0), nullptr);
  EXPECT_EQ(b->producer, made);
  check_invariants(graph);
  graph.erase(old_producer);
  check_invariants(graph);
}

constexpr const char* kWithSubgraph = R"(opset 17 graph g {
  input %c: bool[]
  input %x: float32[2]
  %a = Relu(%x)
  %y = If(%c) {
    then_branch=graph t {
      output %a
    },
    else_branch=graph e {
      %n = Neg(%a)
      output %n
    }
  }
  output %y
})";

TEST(Graph, ReplaceUsesReachesOutputsOfSubgraphs) {
  const Model model = parse_model(kWithSubgraph);
  Graph& graph = *model.graph;
  const Node* branch = find_node(graph, "If");
  Value* a = graph.first()->output(0);
  graph.replace_uses(a, graph.inputs()[1]);
  EXPECT_EQ(subgraphs_of(*branch)[0]->outputs()[0], graph.inputs()[1]);
  EXPECT_EQ(graph.outputs()[0], branch->output(0));
  EXPECT_TRUE(a->uses.empty());
  check_invariants(graph);
}

TEST(Graph, EraseReleasesWhatSubgraphsUse) {
  const Model model = parse_model(kWithSubgraph);
  Graph& graph = *model.graph;
  graph.set_output(0, graph.inputs()[1]);
  graph.erase(find_node(graph, "If"));
  EXPECT_TRUE(graph.first()->output(0)->uses.empty());
  check_invariants(graph);
}

TEST(Graph, AnEditInASubgraphMarksTheNodesAround) {
  const Model model = parse_model(kWithSubgraph);
  Node* branch = find_node(*model.graph, "If");
  const GraphPtr inner = subgraphs_of(*branch)[1];
  const auto unmarked = [&] {
    branch->source = Bytes::own(std::string("as read"));
    inner->first()->source = Bytes::own(std::string("as read"));
  };
  unmarked();
  inner->add_node("", "Abs");
  EXPECT_TRUE(branch->source.empty());
  unmarked();
  inner->add_initializer("k", make_ints({1}));
  EXPECT_TRUE(branch->source.empty());
  unmarked();
  inner->first()->set_attribute("alpha", 1.0);
  EXPECT_TRUE(branch->source.empty());
  EXPECT_TRUE(inner->first()->source.empty());
}

TEST(Graph, UniqueNamesAreUniqueInTheGraphsAroundToo) {
  const Model model = parse_model(kWithSubgraph);
  const GraphPtr inner = subgraphs_of(*find_node(*model.graph, "If"))[1];
  EXPECT_EQ(inner->unique_name("fresh"), "fresh");
  EXPECT_EQ(inner->unique_name("n"), "n_2");
  EXPECT_EQ(inner->unique_name("x"), "x_2");
  EXPECT_EQ(inner->unique_name("x"), "x_3");
  EXPECT_EQ(model.graph->unique_name("n"), "n");
}

TEST(Graph, AttributesByName) {
  const Model model = two_relus();
  Node& node = *model.graph->first();
  node.set_attribute("axis", int64_t{1});
  node.set_attribute("axis", int64_t{2});
  ASSERT_EQ(node.attributes.size(), 1U);
  EXPECT_EQ(*node.find_attribute("axis")->value.get<int64_t>(), 2);
  EXPECT_EQ(*node.take_attribute("axis").get<int64_t>(), 2);
  EXPECT_TRUE(node.take_attribute("axis").is_none());
  EXPECT_EQ(node.find_attribute("axis"), nullptr);
}

TEST(Graph, RemoveInputTakesItsDeclarationAlong) {
  const Model model = parse_model("graph { input %a input %b input %c }");
  model.graph->input_declarations[2] = Bytes::own(std::string("c"));
  model.graph->remove_input(1);
  EXPECT_EQ(model.graph->inputs().size(), 2U);
  ASSERT_EQ(model.graph->input_declarations.size(), 2U);
  EXPECT_EQ(model.graph->input_declarations[1].view(), "c");
}

TEST(AttrTypeOf, NumbersOfOnnx) {
  EXPECT_EQ(attr_type_of(AttrValue(1.5)), AttrType::Float);
  EXPECT_EQ(attr_type_of(AttrValue(int64_t{1})), AttrType::Int);
  EXPECT_EQ(attr_type_of(AttrValue(AttrList{Type{}})), AttrType::Types);
  EXPECT_EQ(attr_type_of(AttrValue(AttrList{})), AttrType::None);
  EXPECT_EQ(attr_type_of(AttrValue(DType::Int8)), AttrType::None);
  // AttributeProto.AttributeType
  EXPECT_EQ(static_cast<int>(AttrType::SparseTensor), 11);
  EXPECT_EQ(static_cast<int>(AttrType::SparseTensors), 12);
  EXPECT_EQ(static_cast<int>(AttrType::Type), 13);
  EXPECT_EQ(static_cast<int>(AttrType::Types), 14);
}

TEST(Invariants, SayWhatIsBroken) {
  const auto broken = [](auto&& break_it) {
    const Model model = parse_model(kWithSubgraph);
    break_it(*model.graph);
    return error_of([&] { check_invariants(*model.graph); }).text();
  };
  EXPECT_EQ(broken([](Graph& g) { g.inputs()[1]->uses.clear(); }), "a use is not listed with its value");
  EXPECT_EQ(broken([](Graph& g) {
              g.inputs()[1]->uses.push_back({g.last(), 5});
            }),
            "a value lists a use that does not exist");
  EXPECT_EQ(broken([](Graph& g) { g.last()->output(0)->producer = g.first(); }), "a value does not know its producer");
  EXPECT_EQ(broken([](Graph& g) { g.first()->set_input(0, g.last()->output(0)); }),
            "a value is used before it is made");
  EXPECT_EQ(broken([](Graph& g) { subgraphs_of(*g.last())[0]->owner = nullptr; }),
            "a subgraph does not know the node that it belongs to");
  EXPECT_EQ(broken([](Graph& g) { g.add_initializer(g.inputs()[0]); }), "an initializer has no tensor");
  const Model other = two_relus();
  EXPECT_EQ(broken([&](Graph& g) { g.add_output(other.graph->inputs()[0]); }), "an output is never made");
}

TEST(Invariants, AreCheckedInLinearTime) {
  std::string text = "opset 17 graph { input %x\n";
  for (int i = 0; i < 20000; ++i) text += fmt::format("%{} = Relu(%x)\n", i);
  const Model model = parse_model(text + "}");
  EXPECT_EQ(model.graph->inputs()[0]->uses.size(), 20000U);
  EXPECT_FALSE(body_of(*model.graph).empty());
}

}  // namespace
}  // namespace tonnx
