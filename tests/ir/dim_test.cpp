// dim_test.cpp - arithmetic on symbolic sizes.
#include "ir/dim.h"

#include "checks.h"

namespace tonnx {
namespace {

const Dim n = Dim::symbol("n"), h = Dim::symbol("h"), w = Dim::symbol("w");
constexpr int64_t kMost = INT64_MAX, kLeast = INT64_MIN;

TEST(Dim, EqualExpressionsAreEqual) {
  EXPECT_EQ(n + h, h + n);
  EXPECT_EQ(n * h * 2, h * 2 * n);
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ((n + h) * (n + h), n * n + n * h * 2 + h * h);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(n * 0, Dim(0));
  EXPECT_EQ(n + n, n * 2);
  EXPECT_FALSE(n == h);
  EXPECT_FALSE(n == Dim(1));
  EXPECT_FALSE(n + 1 == n);
}

TEST(Dim, ConstantsAndNames) {
  EXPECT_EQ((n - n + 4).constant(), 4);
  EXPECT_FALSE(n.constant());
  EXPECT_TRUE(Dim(3).is(3));
  EXPECT_EQ(n.symbol_name(), "n");
  EXPECT_FALSE((n + 1).symbol_name());
  EXPECT_FALSE((n * 2).symbol_name());
  EXPECT_FALSE(floor_div(n, 2).symbol_name());
}

TEST(Dim, FloorDivisionRoundsDown) {
  EXPECT_EQ(floor_div(7, 2), Dim(3));
  EXPECT_EQ(floor_div(-7, 2), Dim(-4));
  EXPECT_EQ(floor_div(7, -2), Dim(-4));
  EXPECT_EQ(floor_div(-7, -2), Dim(3));
  EXPECT_EQ(ceil_div(7, 2), Dim(4));
  EXPECT_EQ(ceil_div(-7, 2), Dim(-3));
  EXPECT_EQ(ceil_div(7, -2), Dim(-3));
  EXPECT_EQ(mod(7, 3), Dim(1));
  EXPECT_EQ(mod(-7, 3), Dim(2));
  EXPECT_EQ(mod(7, -3), Dim(-2));
}

TEST(Dim, FloorDivisionTakesWholePartsOut) {
  EXPECT_EQ(floor_div(n * 4, 2), n * 2);
  EXPECT_EQ(floor_div(n * 2 + 1, 2), n);
  EXPECT_EQ(floor_div(n * 2 - 1, 2), n - 1);
  EXPECT_EQ(floor_div(h + 4, 2), floor_div(h, 2) + 2);
  EXPECT_EQ(floor_div(h + 5, 2), floor_div(h + 1, 2) + 2);
  EXPECT_EQ(floor_div(h - 1, 2), floor_div(h + 1, 2) - 1);
  EXPECT_EQ(floor_div(n * 6 + h, 3), n * 2 + floor_div(h, 3));
  EXPECT_EQ(floor_div(n * h, n), h);
  EXPECT_EQ(floor_div(n, n), Dim(1));
  EXPECT_EQ(ceil_div(h, 2), floor_div(h + 1, 2));
  EXPECT_EQ(mod(n * 6, 3), Dim(0));
}

TEST(Dim, ExactDivision) {
  EXPECT_EQ(exact_div(n * 6 + 4, 2), n * 3 + 2);
  EXPECT_FALSE(exact_div(n * 6 + 3, 2));
  EXPECT_EQ(exact_div(n * h * 6 + n * 2, n * 2), h * 3 + 1);
  EXPECT_FALSE(exact_div(n * h + 1, n));
  EXPECT_FALSE(exact_div(n, h));
  EXPECT_FALSE(exact_div(n, 0));
  EXPECT_EQ(exact_div(n * 3, -1), n * -3);
}

TEST(Dim, MaxAndMinAsFarAsTheFormShows) {
  EXPECT_EQ(max(3, 5), Dim(5));
  EXPECT_EQ(max(n + 1, n), n + 1);
  EXPECT_EQ(min(n + h, n), n);
  EXPECT_EQ(max(n, 0), n);  // a size is never negative
  EXPECT_EQ(min(n, -1), Dim(-1));
  EXPECT_EQ(max(n, h), max(h, n));
  EXPECT_EQ(min(n, 5), min(5, n));
  EXPECT_FALSE(max(n, h) == min(n, h));
  EXPECT_EQ(max(max(n, h), 0), max(n, h));
}

TEST(Dim, NonNegativeWhereTheFormShowsIt) {
  for (const Dim& dim : {n, n * h + 2, floor_div(n, 2), max(n - 5, 0), mod(n - 5, 3), Dim(0)}) {
    EXPECT_TRUE(dim.is_non_negative()) << dim.text();
  }
  for (const Dim& dim : {n - 1, n * -1, floor_div(n - 5, 2) - 1, min(n, h - 1), Dim(-1)}) {
    EXPECT_FALSE(dim.is_non_negative()) << dim.text();
  }
}

TEST(Dim, NothingOverflowsSilently) {
  EXPECT_ERROR(InvalidModel, "overflows", Dim(kMost) + 1);
  EXPECT_ERROR(InvalidModel, "overflows", Dim(kLeast) - 1);
  EXPECT_ERROR(InvalidModel, "overflows", Dim(kMost) * 2);
  EXPECT_ERROR(InvalidModel, "overflows", n * kMost * 2);
  EXPECT_ERROR(InvalidModel, "overflows", n * kMost + n);
  EXPECT_ERROR(InvalidModel, "overflows", floor_div(kLeast, -1));
  EXPECT_ERROR(InvalidModel, "overflows", exact_div(n * kLeast, -1));
  EXPECT_ERROR(InvalidModel, "overflows", count_of({kMost, n, 2}));
  EXPECT_EQ(mod(kLeast, -1), Dim(0));
  EXPECT_EQ(floor_div(kLeast, 1), Dim(kLeast));
}

TEST(Dim, ComparesWithoutOverflow) {
  EXPECT_EQ(max(kLeast, n), n);
  EXPECT_EQ(min(kLeast, n), Dim(kLeast));
  EXPECT_EQ(min(Dim(kMost), n), min(n, Dim(kMost)));
  EXPECT_EQ(max(n + kLeast, n + kMost), n + kMost);
}

TEST(Dim, DivisionByZeroIsAnError) {
  EXPECT_ERROR(InvalidModel, "divided by zero", floor_div(n, 0));
  EXPECT_ERROR(InvalidModel, "divided by zero", mod(n, 0));
  EXPECT_ERROR(InvalidModel, "divided by zero", ceil_div(4, 0));
}

TEST(Dim, GrowthHasAnEnd) {
  EXPECT_ERROR(Unsupported, "terms", {
    Dim x = n + h + w + 1;
    for (int i = 0; i < 60; ++i) x = x * x;
  });
  EXPECT_ERROR(Unsupported, "characters", {
    Dim x = n;
    for (int i = 0; i < 60; ++i) x = x * x;
  });
  EXPECT_ERROR(Unsupported, "characters", {
    Dim x = n;
    for (int i = 0; i < 60; ++i) x = floor_div(x + h, x + 3);
  });
}

TEST(Dim, Text) {
  EXPECT_EQ(text_of(n * 2 + floor_div(h + 1, 2)), "floor((h + 1)/2) + 2*n");
  EXPECT_EQ(text_of(n * -1 + 4), "-n + 4");
  EXPECT_EQ(text_of(n - h * 3 - 1), "-3*h + n - 1");
  EXPECT_EQ(text_of(floor_div(n * 3, h * 2)), "floor(3*n/(2*h))");
  EXPECT_EQ(text_of(floor_div(n, h)), "floor(n/h)");
  EXPECT_EQ(text_of(max(n, h + 1)), "max(h + 1, n)");
  EXPECT_EQ(text_of(mod(n, 3)), "mod(n, 3)");
  EXPECT_EQ(text_of(n * kLeast + kLeast), "-9223372036854775808*n - 9223372036854775808");
  EXPECT_EQ(text_of(Dim::symbol("")), "?");
  EXPECT_EQ(text_of(Dim::symbol("2*n") + n), "\"2*n\" + n");
  EXPECT_EQ(text_of(Shape{1, n, 3}), "[1, n, 3]");
}

TEST(Dim, CountOfAShape) {
  EXPECT_EQ(count_of(Shape{}), Dim(1));
  EXPECT_EQ(count_of({2, n, 3}), n * 6);
  EXPECT_EQ(count_of({n, 0}), Dim(0));
}

}  // namespace
}  // namespace tonnx
