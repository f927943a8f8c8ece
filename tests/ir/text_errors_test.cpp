// text_errors_test.cpp - text that is no model: one error with line and column, whatever the text is.
#include <random>

#include "checks.h"

namespace tonnx {
namespace {

TEST(TextErrors, SayWhereAndWhat) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "line 1, column 1: the text ends where a graph is expected"},
      {"opset", "line 1, column 6: the text ends where a domain is expected"},
      {"opset 17\ngraph {\n  %y = Relu(%x)\n}", "line 3, column 13: %x is used, but nothing before makes it"},
      {"graph { input %x\n input %x }", "line 2, column 8: two values have the name %x"},
      {"graph { %x = A()\n %x = B() }", "line 2, column 2: two values have the name %x"},
      {"graph { const %a: int8[1]{1} const %a: int8[1]{1} }", "two values have the name %a"},
      {"graph { param %a: int8[2]{1, 2} of [3] }", "line 1, column 36: %a has another number of elements"},
      {"graph { param %a: int8[2]{1, 2} of [9223372036854775807, 3] }", "overflow 64 bits"},
      {"graph { %y = A( }", "line 1, column 17: ')' is expected, not }"},
      {"graph { %y = A() {a=1, a=2} }", "line 1, column 24: attribute 'a' is given twice"},
      {"graph { %y A() }", "'=' is expected"},
      {"graph { foo }", "a statement is expected"},
      {"graph { output %y }", "%y is used"},
      {"graph { } graph { }", "the end is expected, not graph"},
      {"graph { input %x: float33 }", "an element type is expected, not float33"},
      {"graph { input %x: float32[n }", "']' is expected"},
      {"graph { input %x: float32[1/2] }", "']' is expected"},
      {"graph { input %x: float32[foo(1, 2)] }", "none of floor, max, min, mod"},
      {"graph { input %x: float32[floor(n/0)] }", "line 1, column 27: a dimension is divided by zero"},
      {"graph { input %x: float32[9223372036854775807 + 1] }", "line 1, column 47: a dimension overflows 64 bits"},
      {"graph { input %x: float32[9223372036854775808] }", "does not fit into 64 bits"},
      {"graph { input %x: seq() }", "an element type is expected"},
      {"graph { input %x: sparse(seq(int8)) }", "of an element type"},
      {"graph { const %a: int8[2]{1} }", "line 1, column 26: 1 values for a tensor of 2 elements"},
      {"graph { const %a: int8[1]{1, 2} }", "2 values for a tensor of 1 elements"},
      {"graph { const %a: int8[1]{128} }", "128 is no element of int8"},
      {"graph { const %a: uint4[1]{-1} }", "-1 is no element of uint4"},
      {"graph { const %a: uint8[1]{0x100} }", "0x100 is no element of uint8"},
      {"graph { const %a: uint8[1]{0x} }", "0x is no element of uint8"},
      {"graph { const %a: int8[1]{1.5} }", "an integer is expected"},
      {"graph { const %a: bool[1]{1} }", "True or False is expected"},
      {"graph { const %a: float32[1]{1e999} }", "out of range"},
      {"graph { const %a: float32[-1]{} }", "negative size"},
      {"graph { const %a: float32[4294967296, 4294967296]{} }", "overflow 64 bits"},
      {"graph { const %a: float32[1000000000]{1.0} }", "the text ends before that many"},
      {"graph { const %a: undefined[1]{1} }", "no element type"},
      {"graph { const %a: float32[2] <8 B> }", "line 1, column 30: the values are left out here"},
      {"graph { const %a: sparse[2](float32[1]{1.0}, float32[1]{0.0}) }", "no integers"},
      {"graph { %y = A() {a=[1, 2.5]} }", "a type that ONNX does not have"},
      {"graph { %y = A() {a=float32} }", "a type that ONNX does not have"},
      {"graph { %y = A() {a: int = 1.5} }", "not of its type"},
      {"graph { %y = A() {a: nothing = 1} }", "the type of an attribute is expected"},
      {"graph { %y = A() {a=%y} }", "a value is no attribute"},
      {"graph { %y = A() {a=12x} }", "a number that ends in letters"},
      {"graph { % = A() }", "a name is missing after '%'"},
      {"graph { %y = A() \"name }\n", "line 1, column 18: a string without its closing quote"},
      {"graph { %y = A() \"a\\q\" }", "line 1, column 20: an escape that is none of"},
      {"graph { %y = A() \"a\\x4\" }", "an escape that is none of"},
      {"graph { $ }", "line 1, column 9: a character that cannot stand here"},
      {"function aten::f { } graph { }", "a domain of ONNX"},
      {"graph { extra <5 B> }", "left out"},
  };
  for (const auto& [text, message] : kCases) {
    SCOPED_TRACE(text);
    EXPECT_ERROR(InvalidModel, message, parse_model(text));
    EXPECT_ERROR(InvalidModel, "line ", parse_model(text));
  }
}

std::string repeated(const char* text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(TextErrors, DepthHasAnEnd) {
  const int deep = 100000;
  for (const std::string& text : {
           "graph { input %x: " + repeated("seq(", deep),
           "graph { input %x: float32[" + repeated("(", deep),
           "graph { input %x: float32[" + repeated("floor(", deep),
           "graph { input %x: float32[" + repeated("max(", deep),
           "graph { %y = a::b(l=" + repeated("[", deep),
           repeated("graph { %y = A() {g=", deep),
       }) {
    EXPECT_ERROR(InvalidModel, "nested more than", parse_model(text));
  }
}

TEST(TextErrors, ExpressionsHaveAnEnd) {
  EXPECT_ERROR(InvalidModel, "line 1",
               parse_model("graph { input %x: float32[" + repeated("(a + b + c)*", 100) + "1] }"));
  EXPECT_ERROR(InvalidModel, "line 1", parse_model("graph { input %x: float32[" + repeated("a*", 100000) + "1] }"));
  std::string sum;
  for (int i = 0; i < 10000; ++i) sum += fmt::format("s{} + ", i);
  EXPECT_ERROR(InvalidModel, "more than 128 terms", parse_model("graph { input %x: float32[" + sum + "1] }"));
  const Model model = parse_model("graph { input %x: float32[" + repeated("a + ", 100000) + "1] }");
  EXPECT_EQ((*model.graph->inputs()[0]->type.shape)[0], Dim::symbol("a") * 100000 + 1);
}

TEST(TextErrors, ManyOfEverythingTakesLittleTime) {
  std::string text = "opset 17 graph { input %x\n";
  for (int i = 0; i < 20000; ++i)
    text += fmt::format("%v{} = Foo(%x, %x) {{a{}=1}} metadata \"k{}\" = \"v\"\n", i, i, i);
  text += "%z = Foo(%x) {";
  for (int i = 0; i < 20000; ++i) text += fmt::format("a{}=1, ", i);
  text += "b=[" + repeated("1, ", 100000) + "1]} }";
  const Model model = parse_model(text);
  EXPECT_EQ(print(parse_model(print(model))), print(model));
}

TEST(TextErrors, BrokenTextNeverDoesMoreThanFail) {
  const std::string good = R"(ir_version 8 opset 17 opset com.x 1 producer "p" "1" doc "d" metadata "a" = "b"
function com.x.F:o { opset 17 attribute a attribute b=1.5 input %x %y = Relu(%x) {s: float = @a} output %y }
graph g { extra "\x01" input %c: bool[] input %x: float32[n, floor((h + 1)/2), max(n, 2*h)]
  const %w: float32[2]{1.0, nan} const %s: sparse[4](int4[1]{-1}, int64[1]{2}) param %p: complex64[1]{(1.0, -2.0)}
  %a: seq(float32), _ = com.x.F:o-3(%x, _) {i=1, f=0.5, s="t\n", l=[1, 2], t=int8[1]{1}("n" doc "d"), y=type(map(int64, string))} "name"
  %b = If(%c) { then_branch=graph t { output %x }, else_branch=graph { %q = Neg(%x) output %q } } doc "x" metadata "k" = "v"
  %d = aten::add.Tensor(self=%a, other=[%b, None, True], dtype=float16, eps=1e-05f) output %d })";
  check_invariants(*parse_model(good).graph);
  std::mt19937 random(7);
  const std::string alphabet = "()[]{}<>,=:*+-/@.?%\"\\#\n 019nx_";
  int parsed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (unsigned edits = random() % 3 + 1; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = alphabet[random() % alphabet.size()]; break;
        case 1: text.erase(at, random() % 20 + 1); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 30)); break;
        default: text.resize(at + 1);
      }
    }
    try {
      const Model model = parse_model(text);
      check_invariants(*model.graph);
      const std::string printed = print_all(model);
      EXPECT_EQ(print_all(parse_model(printed)), printed);
      ++parsed;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::InvalidModel) << e.what() << "\n" << text;
      ASSERT_TRUE(e.text().starts_with("line ")) << e.what();
    }
  }
  EXPECT_GT(parsed, 30);
}

}  // namespace
}  // namespace tonnx
