// sympy_test.cpp - sizes as sympy's srepr writes them.
#include "formats/pt2/sympy.h"

#include "checks.h"

namespace tonnx {
namespace {

std::string parsed(const std::string& text) {
  const auto size = pt2::parse_size(text);
  return size ? size->text() : "none";
}

TEST(Sympy, Sizes) {
  const std::string s = "Symbol('s0', positive=True, integer=True)";
  EXPECT_EQ(parsed(s), "s0");
  EXPECT_EQ(parsed("Integer(-3)"), "-3");
  EXPECT_EQ(parsed("17"), "17");
  EXPECT_EQ(parsed("Add(" + s + ", Integer(1))"), (Dim::symbol("s0") + Dim(1)).text());
  EXPECT_EQ(parsed("Mul(Integer(4), " + s + ", Symbol('s1'))"),
            (Dim(4) * Dim::symbol("s0") * Dim::symbol("s1")).text());
  EXPECT_EQ(parsed("Pow(" + s + ", Integer(2))"), (Dim::symbol("s0") * Dim::symbol("s0")).text());
  EXPECT_EQ(parsed("FloorDiv(Add(" + s + ", Integer(-1)), Integer(2))"),
            floor_div(Dim::symbol("s0") - Dim(1), Dim(2)).text());
  EXPECT_EQ(parsed("Mod(" + s + ", Integer(8))"), mod(Dim::symbol("s0"), Dim(8)).text());
  EXPECT_EQ(parsed("Max(Integer(1), " + s + ")"), max(Dim(1), Dim::symbol("s0")).text());
  EXPECT_EQ(parsed("torch.utils._sympy.functions.FloorDiv(" + s + ", Integer(2))"),
            floor_div(Dim::symbol("s0"), Dim(2)).text());
}

TEST(Sympy, Fractions) {
  const std::string s = "Symbol('s0')";
  EXPECT_EQ(parsed("Mul(Rational(1, 2), Mul(Integer(4), " + s + "))"), (Dim(2) * Dim::symbol("s0")).text());
  EXPECT_EQ(parsed("CeilToInt(IntTrueDiv(" + s + ", Integer(2)))"), ceil_div(Dim::symbol("s0"), Dim(2)).text());
  EXPECT_EQ(parsed("Mul(Rational(1, 2), " + s + ")"), "none");
  const std::string quarter = "FloatTrueDiv(ToFloat(" + s + "), Float('4.0', precision=53))";
  EXPECT_EQ(parsed("TruncToInt(" + quarter + ")"), floor_div(Dim::symbol("s0"), Dim(4)).text());
  EXPECT_EQ(parsed("Mul(Integer(3), FloorDiv(" + s + ", TruncToInt(" + quarter + ")))"),
            (Dim(3) * floor_div(Dim::symbol("s0"), floor_div(Dim::symbol("s0"), Dim(4)))).text());
  EXPECT_EQ(parsed("FloorToInt(Mul(Float('2.5', precision=53), ToFloat(" + s + ")))"),
            floor_div(Dim(5) * Dim::symbol("s0"), Dim(2)).text());
  EXPECT_EQ(parsed("TruncToInt(FloatTrueDiv(ToFloat(Add(" + s + ", Integer(-9))), Float('2.0', precision=53)))"),
            "none");
  EXPECT_EQ(parsed("FloorToInt(Mul(Float('0.1', precision=53), ToFloat(" + s + ")))"), "none");
  EXPECT_EQ(parsed("FloatTrueDiv(ToFloat(" + s + "), Float('0.0', precision=53))"), "none");
  EXPECT_EQ(parsed("Float('nan', precision=53)"), "none");
}

TEST(Sympy, UnbackedSymbolsAreToldApartFromOurs) { EXPECT_EQ(parsed("Symbol('u0', integer=True)"), "data0"); }

TEST(Sympy, NamesAreGiven) {
  const pt2::SymbolNames names{{"s77", "batch"}};
  EXPECT_EQ(pt2::parse_size("Mul(Integer(2), Symbol('s77'))", names)->text(), (Dim(2) * Dim::symbol("batch")).text());
}

TEST(Sympy, OtherExpressionsAreNoSizes) {
  EXPECT_EQ(parsed("Piecewise((Integer(1), Equality(Symbol('s0'), Integer(1))), (Symbol('s0'), true))"), "none");
  EXPECT_EQ(parsed("Pow(Symbol('s0'), Integer(-1))"), "none");
  EXPECT_EQ(parsed("FloorDiv(Symbol('s0'), Integer(0))"), "none");
  EXPECT_EQ(parsed("oo"), "none");
}

TEST(Sympy, Malformed) {
  for (const char* text : {"", "(", "Symbol(", "Symbol('s0'", "Integer(x)", "Integer(1) 2", "Add(Integer(1)", "1 +",
                           "__import__('os').system('true')", "Integer(99999999999999999999)"}) {
    EXPECT_THROW(pt2::parse_size(text), Error) << text;
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "Add(";
  EXPECT_THROW(pt2::parse_size(deep), Error);
}

}  // namespace
}  // namespace tonnx
