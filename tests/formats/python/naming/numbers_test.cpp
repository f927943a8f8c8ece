// numbers_test.cpp - numbers of variables: the quick search finds what trying one after the other finds.
#include "formats/python/naming/numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tonnx::python {
namespace {

/// A block whose variables are needed for a while, and maybe one around it.
struct Block {
  const Block* outer;
  int outer_position;
  std::map<int, int> until = {};  // by number

  int needed_until(int number) const {
    if (outer != nullptr && outer->needed_until(number) > outer_position) return Numbers::kAlways;
    const auto at = until.find(number);
    return at == until.end() ? -1 : at->second;
  }
  int lowest(int position) const {
    int number = 1;
    while (needed_until(number) > position) ++number;
    return number;
  }
};

/// Takes numbers at growing positions, each for a random while, and compares.
void take_some(Block& block, Numbers& numbers, int first, int last, std::mt19937& random) {
  for (int position = first; position < last; ++position) {
    const int found = numbers.find(
        position, 0, [&](int number) { return block.needed_until(number); }, [](int) { return true; });
    ASSERT_EQ(found, block.lowest(position)) << "at position " << position;
    block.until[found] = position + static_cast<int>(random() % 40);
    // a number may be taken without a search: what held it is needed no more
    const int other = static_cast<int>(random() % 30) + 1;
    if (random() % 3 == 0 && block.needed_until(other) <= position) block.until[other] = position + 5;
  }
}

TEST(Numbers, AreTheLowestThatAreFree) {
  std::mt19937 random(1);
  Block block{nullptr, 0};
  Numbers numbers(1, nullptr);
  take_some(block, numbers, 0, 2000, random);
}

TEST(Numbers, OfABlockInsideAnotherAvoidThoseAround) {
  std::mt19937 random(2);
  Block outer{nullptr, 0};
  Numbers outer_numbers(1, nullptr);
  for (int i = 0; i < 50; ++i) {
    take_some(outer, outer_numbers, i * 40, i * 40 + 40, random);
    const int position = i * 40 + 39;
    Block inner{&outer, position};
    outer_numbers.release(position);
    Numbers inner_numbers(1, &outer_numbers);
    take_some(inner, inner_numbers, 0, 60, random);
  }
}

TEST(Numbers, ThatAreChosenTogetherAreDifferent) {
  Numbers numbers(2, nullptr);
  int last = 0;
  for (int expected = 2; expected < 100; ++expected) {
    last = numbers.find(
        5, last, [](int) { return -1; }, [](int number) { return number % 2 == 0; });
    EXPECT_EQ(last, expected % 2 == 0 ? expected : expected + 1);
    if (expected % 2 == 0) ++expected;
  }
}

}  // namespace
}  // namespace tonnx::python
