// text_test.cpp - what is printed parses back to the same; every kind of thing that a model can hold.
#include "ir/text.h"

#include "checks.h"

namespace tonnx {
namespace {

/// Parses, checks, and expects the text itself back.
Model expect_round_trip(const std::string& text) {
  Model model = parse_model(text);
  check_invariants(*model.graph);
  for (const Function& function : model.functions) check_invariants(*function.body);
  EXPECT_EQ(print_all(model), text);
  return model;
}

/// A model of one node whose attributes are these.
std::string with_attributes(const std::string& attributes) {
  return "ir_version 10\nopset 17\n\ngraph g {\n  %y = Foo() {" + attributes + "}\n\n  output %y\n}\n";
}

const Attribute& attribute_of(const Model& model) { return model.graph->first()->attributes.at(0); }

TEST(Text, AWholeModel) {
  const Model model = expect_round_trip(R"(ir_version 8
opset 17
opset com.microsoft 1
opset "odd domain" 3
producer "pytorch" "2.1.0"
domain "org.example"
version 7
doc "two\nlines"
metadata "author" = "me \"myself\""

graph main_graph {
  doc "the graph"
  metadata "key" = "value"
  extra "\x01\x02"
  input %x: float32[batch, 3, 224, 224]
  input %w: float32[3]
  const %w: float32[3]{1.0, -2.5, 1e-05}
  const %shape: int64[2]{1, -1}

  %1: float32[batch, 3, 224, 224] = Mul(%x, %w) "/mul/Mul"
  %a: float32, _, %b = com.microsoft.Foo(%1, _, %shape) {axis=1, mode="linear"} "node"
        doc "a node"
        metadata "scope" = "a.b"
  () = Sink(%a)
  %onnx::Y_1: float32[batch, 100] = Gemm-11(%b)

  output %onnx::Y_1
  output %x
}
)");
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.opsets.size(), 3U);
  EXPECT_EQ(model.opsets[2], std::pair("odd domain" + std::string(), int64_t{3}));
  EXPECT_EQ(model.producer_version, "2.1.0");
  EXPECT_EQ(model.model_version, 7);
  EXPECT_EQ(model.doc, "two\nlines");
  EXPECT_EQ(model.metadata[0].second, "me \"myself\"");
  const Graph& graph = *model.graph;
  EXPECT_EQ(graph.extra.view(), "\x01\x02");
  EXPECT_EQ(graph.node_count(), 4U);
  EXPECT_EQ(graph.inputs()[1], graph.initializers()[0]);  // an input that has a default
  EXPECT_EQ(*floats_of(*graph.initializers()[0]->constant),
            (std::vector<double>{1.0, -2.5, static_cast<double>(1e-05F)}));
  const Node* foo = find_node(graph, "Foo");
  EXPECT_EQ(foo->domain.view(), "com.microsoft");
  EXPECT_EQ(foo->version, 1);
  EXPECT_EQ(foo->input(1), nullptr);
  EXPECT_EQ(foo->output(1), nullptr);
  EXPECT_EQ(foo->output(2)->output_index, 2U);
  EXPECT_EQ(foo->metadata[0].second, "a.b");
  EXPECT_EQ(graph.first()->version, 17);
  EXPECT_EQ(graph.last()->version, 11);
}

TEST(Text, EveryKindOfAttribute) {
  const char* const kAttributes[] = {
      "i=-9223372036854775808",
      "f=0.1",
      "f=1.0, g=-inf, h=nan, i=3.4028235e+38, j=1e-45, k=-0.0",
      "s=\"text\", t=\"\", u=\"\\xff\\n\\\"\"",
      "t=int64[2]{1, 2}",
      "t=float32[]{0.5}(\"name\" doc \"d\" metadata \"k\" = \"v\")",
      "t=string[2]{\"a\", \"b \\\"c\\\"\"}",
      "t=sparse[3, 4](float32[2]{1.0, 2.0}(\"values\"), int64[2, 2]{0, 1, 2, 3})",
      "t=type(float32[n, 2]), u=type(seq(optional(int64))), v=type(map(int64, string)), w=type(sparse(float32[2]))",
      "t=type(opaque), u=type(?), v=type(seq(?))",
      "ints=[1, -2], floats=[1.0, 2.5], strings=[\"a\", \"\"]",
      "ints=[], floats: floats = [], strings: strings = [], tensors: tensors = [], graphs: graphs = []",
      "sparses: sparses = [], types: types = []",
      "tensors=[int8[1]{1}, bool[2]{True, False}], types=[type(float32), type(int8[])]",
      "sparses=[sparse[2](int8[1]{1}, int64[1]{0})]",
      "\"odd name\"=1, b=2 doc \"why\"",
      "a: int = @alpha, b=@beta, c: graph = @body",
      "n=None",
  };
  for (const char* const attributes : kAttributes) {
    SCOPED_TRACE(attributes);
    expect_round_trip(with_attributes(attributes));
  }
}

TEST(Text, AttributesAreWhatTheySay) {
  const auto attribute = [](const char* text) { return attribute_of(parse_model(with_attributes(text))); };
  EXPECT_EQ(*attribute("f=0.1").value.get<double>(), static_cast<double>(0.1F));  // ONNX keeps 32 bits
  EXPECT_EQ(attribute("f=0.1").type, AttrType::Float);
  EXPECT_EQ(*attribute("s=\"\\x41\\t\"").value.get<std::string>(), "A\t");
  EXPECT_EQ(attribute("l: strings = []").type, AttrType::Strings);
  EXPECT_EQ(attribute("l=[]").type, AttrType::Ints);
  EXPECT_EQ(attribute("a: int = @b").reference, "b");
  EXPECT_EQ(attribute("a: int = @b").type, AttrType::Int);
  const Type type = *attribute("t=type(map(int64, seq(float32[n, 2*n])))").value.get<Type>();
  EXPECT_EQ(type.kind, Type::Kind::Map);
  EXPECT_EQ(type.dtype, DType::Int64);
  EXPECT_EQ((*type.elements[0].elements[0].shape)[1], Dim::symbol("n") * 2);
}

TEST(Text, SubgraphsSeeTheValuesAround) {
  const Model model = expect_round_trip(R"(ir_version 10
opset 17

graph g {
  input %c: bool[]
  input %x: float32[2]

  %y: float32[2] = If(%c) {
    then_branch=graph t {
      const %k: float32[1]{2.0}
      %z = Mul(%x, %k)
      %r = If(%c) {
        then_branch=graph {
          output %z
        },
        else_branch=graph "odd name" {
          output %x
        }
      } "inner"
      output %r
    },
    else_branch=graph e {
      output %x
    }
  } "outer"
        doc "a choice"
  %l = Foo() {
    many=[graph a {
      output %x
    }, graph b {
    }]
  }

  output %y
}
)");
  const Graph& graph = *model.graph;
  const GraphPtr then_branch = subgraphs_of(*graph.first())[0];
  EXPECT_EQ(then_branch->owner, graph.first());
  EXPECT_EQ(then_branch->first()->input(0), graph.inputs()[1]);
  EXPECT_EQ(graph.first()->doc, "a choice");
  EXPECT_EQ(subgraphs_of(*then_branch->last())[0]->outputs()[0], then_branch->first()->output(0));
}

TEST(Text, ElementsOfEveryType) {
  const char* const kTensors[] = {
      "float32[5]{0.1, -0.0, inf, -inf, nan}",
      "float32[2]{0x7fc00001, 0xffc00000}",  // NaN, and not the usual one
      "float64[4]{0.1, 1e+300, -5e-324, nan}",
      "float16[3]{0.1, 65504.0, 6e-08}",
      "bfloat16[3]{1.0, 3.39e+38, 0.001}",
      "float8_e4m3fn[3]{448.0, -0.0, nan}",
      "float8_e4m3fnuz[2]{240.0, nan}",
      "float8_e5m2[3]{57344.0, inf, 0xff}",
      "float8_e5m2fnuz[1]{-57344.0}",
      "float8_e8m0fnu[3]{5.877472e-39, 1.0, 1.7014118e+38}",
      "float4_e2m1fn[3]{6.0, -0.5, -0.0}",
      "float6_e2m3fn[5]{7.5, -0.125, 1.0, 0.0, 3.5}",
      "float6_e3m2fn[2]{28.0, -0.0625}",
      "int2[5]{0, 1, -2, -1, 1}",
      "uint2[3]{0, 3, 2}",
      "int4[3]{-8, 7, -1}",
      "uint4[3]{15, 0, 8}",
      "int8[2]{-128, 127}",
      "uint8[2]{0, 255}",
      "int16[2]{-32768, 32767}",
      "uint16[1]{65535}",
      "int32[2]{-2147483648, 2147483647}",
      "uint32[1]{4294967295}",
      "int64[2]{-9223372036854775808, 9223372036854775807}",
      "uint64[2]{0, 18446744073709551615}",
      "bool[3]{True, False, 0x2}",
      "string[2, 1]{\"a\", \"\\x00\"}",
      "complex64[2]{(1.0, -0.5), (0.1, nan)}",
      "complex128[1]{(0.1, 1e+300)}",
      "float32[]{1.0}",
      "float32[0]{}",
      "float32[0, 3]{}",
  };
  for (const char* const tensor : kTensors) {
    SCOPED_TRACE(tensor);
    const std::string text = fmt::format("ir_version 10\n\ngraph g {{\n  const %c: {}\n  output %c\n}}\n", tensor);
    expect_round_trip(text);
  }
}

TEST(Text, FloatsTakeTheShortestTextThatComesBack) {
  for (const float value : {0.1F, 1.0F / 3, 16777216.0F, 1e10F, 1.17549435e-38F, 3.14159274F, 9.99999975e-06F}) {
    const Model model = parse_model(with_attributes(fmt::format("f={:.9e}", value)));
    EXPECT_EQ(*attribute_of(model).value.get<double>(), static_cast<double>(value));
    expect_round_trip(print_all(model));
  }
}

TEST(Text, SizesAreExpressions) {
  const char* const kShapes[] = {
      "[batch, 3]",
      "[?, ?]",
      "[]",
      "[0]",
      "[2*batch + 1]",
      "[2*batch + floor((h + 1)/2)]",
      "[-n + 4]",
      "[floor(h/(2*w))]",
      "[floor((floor((h + 1)/2) + 1)/2)]",
      "[max(h, n), min(5, h)]",
      "[mod(n, 3)]",
      "[\"dim 0\", \"2*n\", n.x]",
      "[h*w*w]",
      "[9223372036854775807]",
      "[floor(n/w)]",
  };
  for (const char* const shape : kShapes) {
    SCOPED_TRACE(shape);
    expect_round_trip(fmt::format("ir_version 10\n\ngraph g {{\n  input %x: float32{}\n}}\n", shape));
  }
  const Model model = parse_model("graph { input %x: float32[(n + 1)*2 - n, 2*(3 + 4), - (n)] }");
  const Shape& shape = *model.graph->inputs()[0]->type.shape;
  EXPECT_EQ(shape[0], Dim::symbol("n") + 2);
  EXPECT_EQ(shape[1], Dim(14));
  EXPECT_EQ(shape[2], Dim::symbol("n") * -1);
}

TEST(Text, TypesOfEveryKind) {
  for (const char* const type :
       {"float32", "float8_e4m3fn[2]", "seq(float32[n])", "optional(seq(int64))", "map(string, float32[])",
        "sparse(float32[2, 3])", "opaque", "int", "float", "bool_", "int[]", "undefined[2]", "seq(?)"}) {
    SCOPED_TRACE(type);
    expect_round_trip(fmt::format("ir_version 10\n\ngraph g {{\n  input %x: {}\n  output %x\n}}\n", type));
  }
}

TEST(Text, NamesThatAreNoWordsAreQuoted) {
  const Model model = expect_round_trip(R"(ir_version 10
opset 17

graph "a b" {
  input %"": float32
  input %"größe {1}": float32
  input %"x:y": float32

  %/layer.1/conv-2/Conv_output_0 = "odd op"(%"")
  %input:0, %12 = "my domain"."Op.x":"over load"(%"größe {1}")
  %"a%" = com.example.Foo:fast(%"x:y")

  output %"a%"
}
)");
  EXPECT_EQ(model.graph->inputs()[1]->name, "größe {1}");
  const Node* odd = model.graph->first()->next;
  EXPECT_EQ(odd->domain.view(), "my domain");
  EXPECT_EQ(odd->op.view(), "Op.x");
  EXPECT_EQ(odd->overload.view(), "over load");
  EXPECT_EQ(odd->output(0)->name, "input:0");
}

TEST(Text, AtenNodesNameTheirArguments) {
  const Model model = expect_round_trip(R"(ir_version 10

graph g {
  input %x: float32[n, 3, 8, 8]
  param %w: float32[1]{2.0}
  const %idx: int64[1]{0}

  %n: int = aten::sym_size.int(self=%x, dim=0)
  %y: float32 = aten::conv2d(input=%x, weight=%w, bias=None, stride=[2, 2], padding="same") "conv"
  %z = aten::reshape(self=%y, shape=[%n, -1])
  %e = aten::native_layer_norm(input=%z, eps=1e-05f, momentum=0.1, flag=True, dtype=float16, names=["a"])
  %l: int[] = tonnx::tolist(self=%idx)
  %f = aten::full(size=[2, 3], fill_value=-inf, other=[1.5, 2.0], mixed=[1, 2.5, None, [%x, %x]])
  %p = aten::odd(%x, other=%w)
  %h = my_lib::"an op"."a.b"(%x)

  output %z
}
)");
  const Graph& graph = *model.graph;
  EXPECT_TRUE(graph.initializers()[0]->trainable);
  EXPECT_FALSE(graph.initializers()[1]->trainable);
  const Node* size = graph.first();
  EXPECT_EQ(size->overload.view(), "int");
  EXPECT_EQ(size->version, 0);
  EXPECT_EQ(*size->find_attribute("self")->value.get<Operand>(), Operand{0});
  const Node* reshape = find_node(graph, "reshape");
  EXPECT_EQ(reshape->inputs().size(), 2U);
  EXPECT_EQ(*reshape->find_attribute("shape")->value.get<AttrList>()->at(0).get<Operand>(), Operand{1});
  const Node* norm = find_node(graph, "native_layer_norm");
  EXPECT_EQ(*norm->find_attribute("eps")->value.get<double>(), static_cast<double>(1e-05F));
  EXPECT_EQ(*norm->find_attribute("momentum")->value.get<double>(), 0.1);
  EXPECT_EQ(*norm->find_attribute("dtype")->value.get<DType>(), DType::Float16);
  EXPECT_EQ(norm->find_attribute("eps")->type, AttrType::None);
}

TEST(Text, Functions) {
  const Model model = expect_round_trip(R"(ir_version 10
opset 17
opset local 1

function local.Swish:fast {
  opset 14
  opset other 2
  doc "x * sigmoid"
  metadata "k" = "v"
  attribute alpha
  attribute beta=1.5
  attribute gamma: ints = @x
  input %x
  input %b: float32[n]

  %s: float32 = Sigmoid(%x)
  %m = Mul(%s, %b) {scale: float = @alpha}
  %o = other.Op-1(%m)

  output %o
}

graph g {
  input %x: float32[2]

  %y = local.Swish:fast(%x) {alpha=0.5}

  output %y
}
)");
  const Function& swish = model.functions[0];
  EXPECT_EQ(swish.domain.view(), "local");
  EXPECT_EQ(swish.overload.view(), "fast");
  EXPECT_EQ(swish.attributes, std::vector<std::string>{"alpha"});
  EXPECT_EQ(swish.default_attributes.size(), 2U);
  EXPECT_EQ(swish.body->first()->version, 14);
  EXPECT_EQ(swish.body->last()->version, 1);
  EXPECT_EQ(find_node(*swish.body, "Mul")->find_attribute("scale")->reference, "alpha");
}

TEST(Text, LargeConstantsAreLeftOut) {
  const Model model = parse_model("graph { const %a: int8[20]{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20} }");
  EXPECT_NE(print(model).find("const %a: int8[20] <20 B>"), std::string::npos);
  EXPECT_EQ(print(model, {.max_elements = 20}).find('<'), std::string::npos);
  EXPECT_ERROR(InvalidModel, "values are left out", parse_model(print(model)));
  auto large = std::make_shared<Tensor>();
  large->dtype = DType::Float32;
  large->dims = {2350};
  large->data = Bytes::own(std::vector<uint8_t>(9400));
  model.graph->add_initializer("b", large);
  EXPECT_NE(print(model).find("const %b: float32[2350] <9.4 kB>"), std::string::npos);
}

TEST(Text, NotesOfNodesCanBeLeftOut) {
  const Model model =
      parse_model("opset 1 graph { %y = Foo() doc \"d\" metadata \"a\" = \"b\" metadata \"c\" = \"\" }");
  EXPECT_NE(print(model).find("metadata \"c\" = \"\""), std::string::npos);
  EXPECT_EQ(print(model, {.notes = false}).find("\"d\""), std::string::npos);
}

TEST(Text, CommentsAndBlanksMeanNothing) {
  const Model model = parse_model("# a model\nopset 17 graph{input%x:float32[2,n]%y=Relu(%x)\"r\"output%y}# end");
  EXPECT_EQ(model.graph->node_count(), 1U);
  EXPECT_EQ(model.graph->first()->name, "r");
  EXPECT_EQ(model.graph->inputs()[0]->type.shape->size(), 2U);
}

TEST(Text, AGraphAloneSaysTheVersionsOfItsNodes) {
  const Model model = parse_model("opset 17 graph g { input %x %y = Relu(%x) output %y }");
  EXPECT_EQ(print(*model.graph), "graph g {\n  input %x\n\n  %y = Relu-17(%x)\n\n  output %y\n}\n");
}

}  // namespace
}  // namespace tonnx
