// nearest_test.cpp - names that are like one that nobody has.
#include "base/nearest.h"

#include "checks.h"

namespace tonnx {
namespace {

TEST(Nearest, ComesFirst) {
  EXPECT_EQ(nearest_first("images", {"mask", "input", "image"}), (Names{"image", "mask", "input"}));
  EXPECT_EQ(nearest_first("x", {"b", "a", "y"}), (Names{"b", "a", "y"}));
  EXPECT_EQ(nearest_first("opset", {"path", "opset_version"})[0], "opset_version");
  EXPECT_EQ(nearest_list("atention_mask", {"input_ids", "attention_mask"}), "attention_mask, input_ids");
}

TEST(Nearest, ListsSomeOfMany) {
  Names known(25, "weight");
  known.push_back("input");
  const std::string text = nearest_list("inputs", known);
  EXPECT_TRUE(text.starts_with("input, weight, "));
  EXPECT_TRUE(text.ends_with(" and 6 more"));
  EXPECT_EQ(nearest_list("inputs", {}), "none");
}

TEST(Nearest, DoesNotCompareLongNames) {
  const std::string very_long(100'000, 'x');
  EXPECT_EQ(nearest_first(very_long, {very_long, "x"}), (Names{very_long, "x"}));
  EXPECT_FALSE(is_near(very_long, very_long));
  EXPECT_TRUE(is_near("opest", "opset"));
  EXPECT_FALSE(is_near("opset", "verify"));
}

}  // namespace
}  // namespace tonnx
