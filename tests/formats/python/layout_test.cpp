// layout_test.cpp - how long statements are broken, by the rules of Python's formatters.
#include "formats/python/layout.h"

#include <algorithm>
#include <sstream>

#include "checks.h"

namespace tonnx::python {
namespace {

TEST(Layout, AShortStatementStaysOnItsLine) {
  EXPECT_EQ(lay_out("x = f(a, b)", 8), "        x = f(a, b)\n");
  const std::string longest = "x = f(" + std::string(kLineWidth - 7, 'a') + ")";
  EXPECT_EQ(lay_out(longest, 0), longest + "\n");
}

TEST(Layout, WhatIsInTheBracketsGoesOnOneLineWhereItFits) {
  const std::string a(60, 'a'), b(50, 'b');
  EXPECT_EQ(lay_out("result = f(" + a + ", " + b + ")", 0), "result = f(\n    " + a + ", " + b + "\n)\n");
}

TEST(Layout, OtherwiseEachItemHasItsLine) {
  const std::string a(60, 'a'), b(60, 'b'), c = "g(1, 2)";
  EXPECT_EQ(lay_out("x = f(" + a + ", " + b + ", " + c + ")", 4),
            "    x = f(\n        " + a + ",\n        " + b + ",\n        " + c + ",\n    )\n");
}

TEST(Layout, StringsAreNotBroken) {
  const std::string text = "\"" + std::string(100, 'x') + ", (\"";
  const std::string out = lay_out("self.call(" + text + ", 'a, b', " + std::string(40, 'y') + ")", 0);
  EXPECT_NE(out.find(text), std::string::npos);
  EXPECT_NE(out.find("'a, b'"), std::string::npos);
}

TEST(Layout, AComprehensionIsBrokenBeforeItsLoop) {
  const std::string item = "Block(" + std::string(100, 'a') + ")";
  EXPECT_EQ(lay_out("x = nn.ModuleList(" + item + " for _ in range(3))", 0),
            "x = nn.ModuleList(\n    " + item + "\n    for _ in range(3)\n)\n");
}

TEST(Layout, SlicesHaveSpacesWhereTheirEndsAreLong) {
  EXPECT_EQ(space_slices("y = x[:, :3] + x[1:n]"), "y = x[:, :3] + x[1:n]");
  EXPECT_EQ(space_slices("y = x[:, :self.a] + x[-self.b:, 2:self.c]"), "y = x[:, : self.a] + x[-self.b :, 2 : self.c]");
  EXPECT_EQ(space_slices("y = x[:, ::self.a]"), "y = x[:, :: self.a]");
}

TEST(Layout, NothingIsLostAndNoLineIsTooLong) {
  std::string statement = "x = torch.cat([";
  for (int i = 0; i < 60; ++i) statement += fmt::format("{}self.layer_{}(x[{}, {}])", i > 0 ? ", " : "", i, i, i + 1);
  statement += "], dim=1)";
  const std::string out = lay_out(statement, 8);
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kLineWidth) << line;
  const auto squeezed = [](std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == ','; });
    return text;
  };
  EXPECT_EQ(squeezed(out), squeezed(statement));
}

}  // namespace
}  // namespace tonnx::python
