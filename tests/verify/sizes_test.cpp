// sizes_test.cpp - sizes as expressions, as inference writes them.
#include "verify/sizes.h"

#include "checks.h"

namespace tonnx::judge {
namespace {

TEST(VerifySizes, AreReadAsInferenceWritesThem) {
  const std::tuple<const char*, SizesByName, int64_t> cases[] = {
      {"floor((h + 1)/2)", {{"h", 64}}, 32},
      {"2*h*w - 3", {{"h", 2}, {"w", 5}}, 17},
      {"max(\"?\" - 4, 0) + mod(w, 3)", {{"?", 10}, {"w", 5}}, 8},
      {"past.length + sequence", {{"past.length", 3}, {"sequence", 4}}, 7},
      {"-h + 9", {{"h", 2}}, 7},
  };
  for (const auto& [text, sizes, value] : cases) {
    const auto made = find_expression(text);
    ASSERT_TRUE(made) << text;
    EXPECT_EQ(value_of(*made, sizes), value) << text;
    for (const std::string& name : names_in(*made)) EXPECT_TRUE(sizes.contains(name)) << text << ": " << name;
  }
}

TEST(VerifySizes, NamesThatAreNoExpressions) {
  for (const char* text : {"unk__12 x", "a b", "2 +", "", "f(x", "%"}) EXPECT_FALSE(find_expression(text)) << text;
}

}  // namespace
}  // namespace tonnx::judge
