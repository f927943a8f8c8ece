// budget_test.cpp - limits of a conversion: what follows from the input, what the user sets, and who shares a budget.
#include "base/budget.h"

#include <gtest/gtest.h>

#include "checks.h"

namespace tonnx {
namespace {

constexpr int64_t kMemory = int64_t{64} << 20;

TEST(Budget, GrowsWithTheInput) {
  const BudgetScope scope;
  EXPECT_TRUE(budget().try_take(Resource::Memory, kMemory));
  EXPECT_FALSE(budget().try_take(Resource::Memory, 1));
  budget().add_input(10);
  EXPECT_TRUE(budget().try_take(Resource::Memory, 300));
  EXPECT_FALSE(budget().try_take(Resource::Memory, 1));
}

TEST(Budget, ErrorsNameTheLimitAndTheOption) {
  Limits limits;
  limits.set("nodes", 3);
  const BudgetScope scope(limits);
  budget().take(Resource::Nodes, 3);
  EXPECT_ERROR(Unsupported, "more than 3 nodes and values", budget().take(Resource::Nodes, 1));
  EXPECT_ERROR(Unsupported, "--limit nodes=", budget().take(Resource::Nodes, 1));
}

TEST(Budget, InsideAnotherScopeItIsThatOne) {
  Limits limits;
  limits.set("steps", 5);
  const BudgetScope outer(limits);
  {
    const BudgetScope inner({}, 1000);
    EXPECT_TRUE(budget().try_take(Resource::Steps, 4));
  }
  EXPECT_FALSE(budget().try_take(Resource::Steps, 2));
  EXPECT_TRUE(budget().try_take(Resource::Steps, 1));
}

TEST(Budget, WithoutAScopeEachAmountStandsAlone) {
  EXPECT_TRUE(budget().try_take(Resource::Memory, kMemory));
  EXPECT_TRUE(budget().try_take(Resource::Memory, kMemory));
  EXPECT_FALSE(budget().try_take(Resource::Memory, kMemory + 1));
}

TEST(Budget, NegativeAmountsAndUnknownLimitsAreRefused) {
  EXPECT_FALSE(budget().try_take(Resource::Memory, -1));
  Limits limits;
  EXPECT_ERROR(InvalidModel, "there is no limit 'time'", limits.set("time", 1));
  EXPECT_ERROR(InvalidModel, "is negative", limits.set("text", -1));
}

TEST(Budget, RoomIsAskedForBeforeItIsTaken) {
  EXPECT_EQ(room_for<double>({3, 4}), 12U);
  EXPECT_EQ(room_for<double>({0, int64_t{1} << 62}), 0U);
  EXPECT_ERROR(Unsupported, "bytes of memory", room_for<double>({1 << 20, 1 << 10}));
  EXPECT_ERROR(InvalidModel, "64 bits", room_for<double>({int64_t{1} << 62, 2, 2}));
  EXPECT_ERROR(InvalidModel, "64 bits", room_for<double>({-1, 0}));
}

TEST(Budget, OwnLimitsComeBeforeOthers) {
  Limits own, others;
  own.set("text", 1);
  others.set("text", 2);
  others.set("nodes", 3);
  const Limits both = own.or_else(others);
  EXPECT_EQ(both.find(Resource::Text), 1);
  EXPECT_EQ(both.find(Resource::Nodes), 3);
  EXPECT_EQ(both.find(Resource::Memory), std::nullopt);
}

}  // namespace
}  // namespace tonnx
