// clone_test.cpp - a copy of a model is the same in all its parts, shares the tensors, and changes by itself.
#include "ir/clone.h"

#include "checks.h"
#include "formats/onnx/onnx.h"

namespace tonnx {
namespace {

constexpr const char* kModel = R"(ir_version 8
opset 17
opset local 1
producer "pytorch" "2.1.0"
domain "org.example"
version 7
doc "two\nlines"
metadata "author" = "me"

function local.Swish:fast {
  opset 14
  doc "x * sigmoid"
  attribute alpha
  attribute beta=1.5
  input %x

  %s: float32 = Sigmoid(%x)
  %m = Mul(%s, %x) {scale: float = @alpha}

  output %m
}

graph main_graph {
  doc "the graph"
  metadata "key" = "value"
  extra "\x01\x02"
  input %x: float32[batch, 3]
  input %w: float32[3]
  input %c: bool[]
  const %w: float32[3]{1.0, -2.5, 1e-05}
  const %shape: int64[2]{1, -1}

  %m: float32[batch, 3] = Mul(%x, %w) "/mul/Mul"
  %a: float32, _, %b = local.Foo(%m, _, %shape) {axis=1, mode="linear", table=int64[2]{1, 2}} "node"
        doc "a node"
        metadata "scope" = "a.b"
  () = Sink(%a)
  %y = If(%c) {
    then_branch=graph t {
      const %k: float32[3]{1.0, 2.0, 3.0}

      %p = Add(%m, %k)
      %q = If(%c) {
        then_branch=graph tt {
          %n = Neg(%p)

          output %n
        },
        else_branch=graph te {

          output %m
        }
      }

      output %q
    },
    else_branch=graph e {
      %r = Mul(%m, %w)

      output %r
    }
  }
  %s = local.Swish:fast(%y)

  output %s
  output %x
}
)";

Model sample() { return parse_model(kModel); }

TEST(Clone, IsTheSameModel) {
  const Model model = sample();
  const Model copy = clone(model);
  check_invariants(*copy.graph);
  check_invariants(*copy.functions[0].body);
  EXPECT_EQ(print_all(copy), print_all(model));
  EXPECT_EQ(copy.graph->inputs()[1], copy.graph->initializers()[0]);  // an input that has a default
}

TEST(Clone, SharesTensorsAndNothingElse) {
  const Model model = sample();
  const Model copy = clone(model);
  for (size_t i = 0; i < model.graph->initializers().size(); ++i) {
    EXPECT_NE(copy.graph->initializers()[i], model.graph->initializers()[i]);
    EXPECT_EQ(copy.graph->initializers()[i]->constant, model.graph->initializers()[i]->constant);
  }
  const auto table = [](const Model& of) {
    return *find_node(*of.graph, "Foo")->find_attribute("table")->value.get<TensorPtr>();
  };
  EXPECT_EQ(table(copy), table(model));
  EXPECT_NE(copy.functions[0].body, model.functions[0].body);
}

TEST(Clone, SubgraphsUseValuesOfTheCopy) {
  const Model model = sample();
  const Model copy = clone(model);
  const Node* branch = find_node(*copy.graph, "If");
  const GraphPtr outer = subgraphs_of(*branch)[0];
  EXPECT_NE(outer, subgraphs_of(*find_node(*model.graph, "If"))[0]);
  EXPECT_EQ(outer->owner, branch);
  const Value* m = copy.graph->first()->output(0);
  EXPECT_EQ(outer->first()->input(0), m);
  const GraphPtr inner = subgraphs_of(*outer->last())[1];
  EXPECT_EQ(inner->owner, outer->last());
  EXPECT_EQ(inner->outputs()[0], m);  // two graphs further out
  EXPECT_EQ(m->uses.size(), model.graph->first()->output(0)->uses.size());
}

TEST(Clone, AndOriginalChangeByThemselves) {
  const Model model = sample();
  const std::string before = print_all(model);
  Model copy = clone(model);
  Graph& graph = *copy.graph;
  Node* foo = find_node(graph, "Foo");
  foo->set_attribute("axis", int64_t{5});
  foo->metadata.clear();
  graph.first()->output(0)->type = {};
  graph.replace_uses(graph.first()->output(0), graph.inputs()[0]);
  graph.erase(graph.first());
  subgraphs_of(*find_node(graph, "If"))[0]->first()->op = Symbol("Sub");
  graph.add_initializer("w", make_ints({1, 2}));
  graph.inputs()[0]->name = "z";
  copy.functions[0].body->first()->op = Symbol("Tanh");
  copy.functions[0].default_attributes[0].value = 2.5;
  copy.metadata.clear();
  copy.opsets[0].second = 18;
  check_invariants(graph);
  EXPECT_EQ(print_all(model), before);
  EXPECT_NE(print_all(copy), before);
  check_invariants(*model.graph);

  const std::string changed = print_all(copy);
  model.graph->first()->op = Symbol("Div");
  model.graph->metadata.clear();
  EXPECT_EQ(print_all(copy), changed);
}

TEST(Clone, OutlivesTheOriginal) {
  auto model = std::make_unique<Model>(sample());
  const std::string before = print_all(*model);
  const Model copy = clone(*model);
  model.reset();
  EXPECT_EQ(print_all(copy), before);
  check_invariants(*copy.graph);
}

TEST(Clone, OfWhatWasReadIsWrittenAsTheSameBytes) {
  Model made = sample();
  made.graph->extra = {};  // those bytes are no fields of a file
  const Model model = read_onnx(Bytes::own(write_onnx_bytes(made)));
  const Model copy = clone(model);
  EXPECT_EQ(copy.file_size, model.file_size);
  EXPECT_FALSE(copy.graph->first()->source.empty());  // so that it is written as it was read
  EXPECT_EQ(write_onnx_bytes(copy), write_onnx_bytes(model));
}

}  // namespace
}  // namespace tonnx
