// inline_functions_test.cpp - calls of functions of the model are replaced by their bodies.
#include "checks.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

std::string inlined(const std::string& text) {
  Model model = parse_model("opset 17 opset local 1 " + text);
  inline_functions(model);
  check_invariants(*model.graph);
  EXPECT_TRUE(model.functions.empty());
  return print(model);
}

std::string expected(const std::string& graph) { return print(parse_model("opset 17 opset local 1 " + graph)); }

TEST(InlineFunctions, TheCallerKeepsItsNames) {
  EXPECT_EQ(
      inlined(R"(function local.F { opset 17 input %x %t = Exp(%x) "e" %y = Neg(%t) "n" output %y }
                       graph g { input %x: float32[2] %r = local.F(%x) "call" %z = Abs(%r) output %z })"),
      expected(
          R"(graph g { input %x: float32[2] %t = Exp(%x) "call/e" %r = Neg(%t) "call/n" %z = Abs(%r) output %z })"));
}

TEST(InlineFunctions, EachCallHasItsOwnValues) {
  EXPECT_EQ(
      inlined(R"(function local.F { opset 17 input %x %t = Exp(%x) %y = Neg(%t) output %y }
                       graph g { input %t: float32[2] %a = local.F(%t) %b = local.F(%a) output %b })"),
      expected(
          R"(graph g { input %t: float32[2] %t_2 = Exp(%t) %a = Neg(%t_2) %t_3 = Exp(%a) %b = Neg(%t_3) output %b })"));
}

TEST(InlineFunctions, AttributesComeFromTheCallTheDefaultOrNowhere) {
  const std::string function = R"(function local.F { opset 17 attribute a attribute b=2
      input %x %y = Foo(%x) {given: int = @a, other: int = @b, mine=3} output %y } )";
  EXPECT_EQ(inlined(function + "graph g { input %x %y = local.F(%x) {a=7} output %y }"),
            expected("graph g { input %x %y = Foo(%x) {given=7, other=2, mine=3} output %y }"));
  EXPECT_EQ(inlined(function + "graph g { input %x %y = local.F(%x) {b=5} output %y }"),
            expected("graph g { input %x %y = Foo(%x) {other=5, mine=3} output %y }"));
}

TEST(InlineFunctions, InputsThatAreAbsentStayAbsent) {
  EXPECT_EQ(inlined(R"(function local.F { opset 17 input %x input %b %y = Foo(%x, %b, %x) output %y }
                       graph g { input %x %y = local.F(%x) output %y })"),
            expected("graph g { input %x %y = Foo(%x, _, %x) output %y }"));
}

TEST(InlineFunctions, AnOutputThatIsAnInputOrTwoOutputs) {
  const std::string text = inlined(R"(function local.F { opset 17 input %x %y = Neg(%x) output %x output %y output %y }
                                      graph g { input %x %a, %b, %c = local.F(%x) output %a output %b output %c })");
  EXPECT_EQ(text.find("local"), text.find("opset local") + 6) << text;  // no call is left
  EXPECT_NE(text.find("output %a\n  output %b\n  output %c"), std::string::npos) << text;
}

TEST(InlineFunctions, FunctionsThatCallFunctions) {
  EXPECT_EQ(inlined(R"(function local.G { opset 17 input %x %y = Neg(%x) output %y }
                       function local.F { opset 17 opset local 1 input %x %t = local.G(%x) %y = local.G(%t) output %y }
                       graph g { input %x %r = local.F(%x) output %r })"),
            expected("graph g { input %x %t = Neg(%x) %r = Neg(%t) output %r }"));
}

TEST(InlineFunctions, OverloadsAreDifferentFunctions) {
  EXPECT_EQ(inlined(R"(function local.F:a { opset 17 input %x %y = Neg(%x) output %y }
                       function local.F:b { opset 17 input %x %y = Abs(%x) output %y }
                       graph g { input %x %r = local.F:b(%x) output %r })"),
            expected("graph g { input %x %r = Abs(%x) output %r }"));
}

TEST(InlineFunctions, SubgraphsInTheBodySeeTheCallersValues) {
  const std::string text = inlined(R"(
    function local.F { opset 17 input %c input %v %t = Exp(%v)
      %y = If(%c) { then_branch=graph a { output %t }, else_branch=graph b { %n = Neg(%v) output %n } } output %y output %t }
    graph g { input %c: bool[] input %n: float32[2] %r, %s = local.F(%c, %n) output %r output %s })");
  EXPECT_EQ(text, expected(R"(
    graph g { input %c: bool[] input %n: float32[2] %s = Exp(%n)
      %r = If(%c) { then_branch=graph a { output %s }, else_branch=graph b { %n_2 = Neg(%n) output %n_2 } } output %r output %s })"));
}

TEST(InlineFunctions, CallsInsideSubgraphs) {
  EXPECT_EQ(inlined(R"(function local.F { opset 17 input %x %y = Neg(%x) output %y }
    graph g { input %c input %x %r = If(%c) { then_branch=graph a { %k = local.F(%x) output %k }, else_branch=graph b { output %x } } output %r })"),
            expected("graph g { input %c input %x %r = If(%c) { then_branch=graph a { %k = Neg(%x) output %k }, "
                     "else_branch=graph b { output %x } } output %r }"));
}

TEST(InlineFunctions, RecursionIsRefused) {
  EXPECT_ERROR(InvalidModel, "call each other",
               inlined(R"(function local.F { opset 17 opset local 1 input %x %y = local.F(%x) output %y }
                                              graph g { input %x %y = local.F(%x) output %y })"));
}

TEST(InlineFunctions, GrowthIsRefused) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text +=
        fmt::format("function local.F{} {{ opset local 1 input %x %a = local.F{}(%x) %y = local.F{}(%a) output %y }}\n",
                    i, i + 1, i + 1);
  }
  text +=
      "function local.F40 { opset 17 input %x %y = Neg(%x) output %y } graph g { input %x %y = local.F0(%x) output %y "
      "}";
  EXPECT_ERROR(InvalidModel, "grow past", inlined(text));
}

TEST(InlineFunctions, TooManyInputsOrOutputsAreRefused) {
  const std::string function = "function local.F { opset 17 input %x %y = Neg(%x) output %y } ";
  EXPECT_ERROR(InvalidModel, "2 inputs for a function of 1",
               inlined(function + "graph g { input %x %y = local.F(%x, %x) output %y }"));
  EXPECT_ERROR(InvalidModel, "output 1 of a function that has 1",
               inlined(function + "graph g { input %x %y, %z = local.F(%x) output %z }"));
}

}  // namespace
}  // namespace tonnx
