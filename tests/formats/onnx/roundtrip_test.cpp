// roundtrip_test.cpp - models to ONNX bytes and back: nothing is lost, and what did not change keeps its bytes.
#include "checks.h"
#include "formats/onnx/messages.h"

namespace tonnx::onnx {
namespace {

Model read_bytes(const std::string& bytes) { return read_onnx(Bytes::own(bytes)); }

/// The model, written and read; it must print the same, and be written again byte by byte.
Model expect_kept(const Model& model) {
  const std::string bytes = write_onnx_bytes(model);
  Model read = read_bytes(bytes);
  check_invariants(*read.graph);
  EXPECT_EQ(print_all(read), print_all(model));
  EXPECT_EQ(write_onnx_bytes(read), bytes);
  return read;
}

TEST(RoundTrip, AWholeModel) {
  expect_kept(parse_model(R"(ir_version 8
opset 17
opset com.microsoft 1
producer "pytorch" "2.1.0"
domain "org.example"
version 7
doc "two\nlines"
metadata "author" = "me"
graph main_graph {
  doc "the graph"
  metadata "key" = "value"
  input %x: float32[batch, 3, ?, "dim 3"]
  input %w: float32[3]
  input %s: seq(float32[n])
  input %m: map(int64, float32[])
  input %o: optional(seq(int64[2]))
  input %p: sparse(float32[4])
  const %w: float32[3]{1.0, -2.5, 1e-05}
  const %shape: int64[2]{1, -1}(doc "where to" metadata "a" = "b")
  const %sp: sparse[3, 4](float32[2]{1.0, 2.0}, int64[2]{1, 5})
  %a: float32[batch, 3, ?, 2], _, %b = com.microsoft.Foo(%x, _, %shape) {axis=1, mode="linear"} "node" doc "n" metadata "scope" = "a.b"
  () = Sink(%a)
  %y: float32[batch, 100] = Gemm(%b, %sp)
  output %y
  output %x
})"));
}

TEST(RoundTrip, EveryKindOfAttribute) {
  expect_kept(parse_model(R"(opset 17 graph g {
    input %x: float32[2]
    %y: float32 = Foo(%x) {i=-5, f=0.1, s="text\xff", e="", z=0, t=int64[2]{1, 2}, u=float32[]{0.5}("name" doc "d" metadata "k" = "v"),
      sp=sparse[3, 4](float32[2]{1.0, 2.0}("values"), int64[2, 2]{0, 1, 2, 3}), ty=type(seq(float32[n, 2])),
      ints=[1, -2], floats=[1.0, 2.5, inf], strings=["a", ""], no_ints=[], no_floats: floats = [], no_strings: strings = [],
      no_tensors: tensors = [], no_graphs: graphs = [], no_types: types = [],
      tensors=[int8[1]{1}, bool[2]{True, False}], types=[type(float32), type(map(string, int8[]))],
      sparses=[sparse[2](int8[1]{1}, int64[1]{0})], d=1 doc "why"}
    output %y
  })"));
}

TEST(RoundTrip, Subgraphs) {
  expect_kept(parse_model(R"(opset 17 graph g {
    input %c: bool[]
    input %x: float32[2]
    %y: float32[2] = If(%c) {
      then_branch=graph t { const %k: float32[1]{2.0} %z: float32[2] = Mul(%x, %k) %r = If(%c) {
        then_branch=graph a { output %z }, else_branch=graph b { output %x } } "inner" output %r },
      else_branch=graph e { output %x }
    } "outer"
    %l = Foo() { many=[graph a { output %x }, graph b { input %i: float32 output %i }] }
    output %y
  })"));
}

TEST(RoundTrip, Functions) {
  const Model model = expect_kept(parse_model(R"(opset 17 opset local 1
    function local.Swish:fast { opset 14 opset other 2 doc "x * sigmoid" metadata "k" = "v" attribute alpha attribute beta=1.5
      input %x: float32[n] input %b
      %s: float32 = Sigmoid(%x) %m = Mul(%s, %b) {scale: float = @alpha} %o: float32[n] = other.Op(%m) output %o }
    graph g { input %x: float32[2] %y: float32[2] = local.Swish:fast(%x) {alpha=0.5} output %y })"));
  EXPECT_EQ(model.functions[0].body->first()->version, 14);
}

TEST(RoundTrip, ElementsOfEveryType) {
  const Model model = parse_model(R"(opset 17 graph g {
    const %a: float32[2]{0.1, nan} const %b: float64[1]{0.1} const %c: float16[1]{0.1} const %d: bfloat16[1]{1.0}
    const %e: float8_e4m3fn[1]{448.0} const %f: float8_e4m3fnuz[1]{240.0} const %g: float8_e5m2[1]{inf}
    const %h: float8_e5m2fnuz[1]{-1.0} const %i: float8_e8m0fnu[1]{2.0} const %j: float4_e2m1fn[3]{6.0, -0.5, 1.0}
    const %k: float6_e2m3fn[5]{7.5, 0.0, 1.0, 1.5, -1.0} const %l: float6_e3m2fn[1]{28.0} const %m: int2[5]{0, 1, -2, -1, 1}
    const %n: uint2[1]{3} const %o: int4[3]{-8, 7, -1} const %p: uint4[3]{15, 0, 8} const %q: int8[1]{-128}
    const %r: uint8[1]{255} const %s: int16[1]{-32768} const %t: uint16[1]{65535} const %u: int32[1]{-2147483648}
    const %v: uint32[1]{4294967295} const %w: int64[1]{-9223372036854775808} const %x: uint64[1]{18446744073709551615}
    const %y: bool[2]{True, False} const %z: string[2]{"a", ""} const %0: complex64[1]{(1.0, -0.5)}
    const %1: complex128[1]{(0.1, 1e+300)} const %2: float32[]{1.0} const %3: float32[0, 3]{} const %4: string[0]{}
  })");
  const Model read = expect_kept(model);
  ASSERT_EQ(read.graph->initializers().size(), 31U);
}

TEST(RoundTrip, OneChangeLeavesTheBytesOfTheOthers) {
  const std::string bytes = write_onnx_bytes(parse_model(R"(opset 17 graph g {
    input %c: bool[] input %x: float32[2]
    %a = Foo(%x) {axis=1} "a" metadata "k" = "v"
    %b = If(%c) { then_branch=graph t { %i = Foo(%x) {axis=1} output %i }, else_branch=graph e { output %x } } "b"
    %y = Foo(%b) {axis=1} "y"
    output %y
  })"));
  Model model = read_bytes(bytes);
  std::vector<std::string> before;
  for (const Node& node : *model.graph) before.emplace_back(node.source.view());
  model.graph->last()->set_attribute("axis", int64_t{2});
  const Model after = read_bytes(write_onnx_bytes(model));
  std::vector<std::string> now;
  for (const Node& node : *after.graph) now.emplace_back(node.source.view());
  EXPECT_EQ(now[0], before[0]);
  EXPECT_EQ(now[1], before[1]);
  EXPECT_NE(now[2], before[2]);
  EXPECT_EQ(*after.graph->last()->find_attribute("axis")->value.get<int64_t>(), 2);
  // a change inside the branch is written too
  subgraphs_of(*model.graph->first()->next)[0]->first()->set_attribute("axis", int64_t{3});
  const Model inner = read_bytes(write_onnx_bytes(model));
  const Node* changed = subgraphs_of(*inner.graph->first()->next)[0]->first();
  EXPECT_EQ(*changed->find_attribute("axis")->value.get<int64_t>(), 3);
}

TEST(RoundTrip, FieldsThatAreNotUnderstoodAreCarriedAlong) {
  const Fields annotation =
      Fields().text(1, "x").message(2, Fields().text(entry::key, "SCALE_TENSOR").text(entry::value, "s"));
  const Fields declared =
      Fields()
          .text(value_info::name, "a")
          .message(value_info::type,
                   Fields().message(type::tensor, Fields().integer(1, 1)).text(type::denotation, "IMAGE"))
          .text(value_info::doc_string, "a value");
  const Fields main_graph =
      Fields()
          .message(graph::node,
                   node_of("Relu", {"x"}, {"a"}).message(node::device_configurations, Fields().text(1, "gpu")))
          .message(graph::node, node_of("Relu", {"a"}, {"y"}).text(99, "later"))
          .text(graph::name, "g")
          .message(graph::input, value_of("x").text(value_info::doc_string, "an input"))
          .message(graph::output, value_of("y"))
          .message(graph::value_info, declared)
          .message(graph::quantization_annotation, annotation);
  const Fields model = model_of(main_graph)
                           .message(model::training_info, Fields().message(1, relu_graph()))
                           .message(model::configuration, Fields().text(1, "mesh"));
  EXPECT_EQ(write_onnx_bytes(read(model)), model.bytes());
}

TEST(RoundTrip, TypesOfInnerValuesAreDeclared) {
  const Model model = read_bytes(write_onnx_bytes(
      parse_model("opset 17 graph g { input %x: float32[2] %a: float32[n, 2] = Foo(%x) %b = Foo(%a) output %b }")));
  EXPECT_EQ(text_of(model.graph->first()->output(0)->type), "float32[n, 2]");
  EXPECT_EQ(model.graph->last()->output(0)->type.kind, Type::Kind::Unknown);
  EXPECT_EQ(model.graph->value_declarations.size(), 1U);
}

}  // namespace
}  // namespace tonnx::onnx
