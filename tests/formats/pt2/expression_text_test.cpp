// expression_text_test.cpp - expressions that PyTorch may evaluate come back as they were, and no others.
#include "formats/pt2/expression_text.h"

#include "checks.h"

namespace tonnx::pt2 {
namespace {

TEST(VettedExpression, WhatSizesAreMadeOfStays) {
  for (const char* const text : {
           "Integer(7)",
           "Symbol('s0', integer=True, positive=True)",
           "Add(Symbol('s0', integer=True), Integer(-1))",
           "Mul(Rational(1, 2), Symbol('batch'), Pow(Symbol('s1'), Integer(2)))",
           "FloorDiv(Add(Symbol('s0'), Integer(1)), Integer(2))",
           "Max(Integer(1), Mod(Symbol('u0'), Integer(3)))",
           "And(StrictLessThan(Symbol('s0'), Integer(4)), Not(Eq(Symbol('s0'), Integer(2))))",
           "Piecewise(ExprCondPair(Integer(1), true), ExprCondPair(Integer(0), false))",
           "Piecewise((Integer(1), true))",
           "Float('0.5', precision=53)",
           "-3",
           "s0",
           "oo",
       }) {
    EXPECT_EQ(vetted_expression(text), text);
  }
  EXPECT_EQ(vetted_expression(" Add( Symbol(\"s0\") ,Integer( 1 ) ) "), "Add(Symbol('s0'), Integer(1))");
  EXPECT_EQ(vetted_expression("torch.utils._sympy.functions.FloorDiv(Symbol('s0'), Integer(2))"),
            "FloorDiv(Symbol('s0'), Integer(2))");
}

TEST(VettedExpression, NothingElseIsEvaluated) {
  for (const char* const text : {
           "",
           "__import__('os').system('x')",
           "Symbol('s0').__class__",
           "Symbol('__import__')",
           "Symbol('s0', integer=print(1))",
           "Symbol('s0', integer=True, **x)",
           "Symbol(Symbol('s0'))",
           "Symbol('Integer')",
           "Integer('1')",
           "Integer(1) or print(1)",
           "Integer(1)\nprint(1)",
           "exec('x')",
           "lambda: 1",
           "print",
           "E",
           "Float('1e999999')",
           "Float('inf')",
           "Float('0.5', precision=1000000000)",
           "Pow(Integer(2), Symbol('s0'))",
           "Pow(Integer(9), Pow(Integer(9), Integer(9)))",
           "Pow(Integer(9), Integer(999999999))",
           "LShift(Integer(1), Integer(999999999))",
           "Add(Integer(1), 'x')",
           "Add()",
           "Add(Integer(1)",
           "[1, 2]",
           "{}",
           "u99999999999",
       }) {
    const Error error = error_of([&] { vetted_expression(text); });
    EXPECT_TRUE(error.kind() == ErrorKind::InvalidModel || error.kind() == ErrorKind::Unsupported) << text;
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "Not(";
  EXPECT_ERROR(InvalidModel, "nested more than", vetted_expression(deep));
  EXPECT_ERROR(InvalidModel, "characters", vetted_expression(std::string(1 << 20, ' ')));
}

TEST(VettedGuard, ComparisonsOfSizesStay) {
  EXPECT_EQ(vetted_guard("L['x'].size()[0] % 2 == 0"), "L['x'].size()[0]%2==0");
  EXPECT_EQ(vetted_guard("not L['a']['b'][0].size()[1] <= 3 or L['x'].stride()[0] > 1"),
            " not L['a']['b'][0].size()[1]<=3 or L['x'].stride()[0]>1");
}

TEST(VettedGuard, NothingElseBecomesCode) {
  for (const char* const text : {
           "__import__('os')",
           "L['x'].__class__",
           "L['x'].numpy()",
           "L['x\"'].size()[0] == 1",
           "print(1)",
           "L['x'].size()[0] == 1\nprint(1)",
           "9**9**9 == 1",
           "9* *9 == 1",
           "L[\"x\"] == 1",
           "f'{1}'",
           "1; 2",
           "a := 1",
           "lambda: 1",
           "99999999999999999999 == 1",
           "# comment",
           "L['x'] is None",
           "'\\x41' == 1",
           "@",
           "~1",
       }) {
    EXPECT_EQ(vetted_guard(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tonnx::pt2
