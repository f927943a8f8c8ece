// budget.cpp - the limits of a conversion, and what is left of them.
#include "base/budget.h"

#include <algorithm>
#include <utility>

#include "base/limit_error.h"
#include "base/nearest.h"

namespace tonnx {
namespace {

constexpr ResourceLimit kLimits[] = {
    {Resource::Memory, "memory", int64_t{64} << 20, 30, "bytes of memory",
     "bytes of constants, lists and attributes that are made and not read: values that are computed, tables, copies"},
    {Resource::Steps, "steps", int64_t{1} << 30, 256, "steps of computation",
     "additions and multiplications by which constants are computed"},
    {Resource::Nodes, "nodes", int64_t{2} << 20, 0.25, "nodes and values",
     "nodes, and values between them, that are read or made, those that go away again included"},
    {Resource::Text, "text", int64_t{64} << 20, 16, "characters of text",
     "characters of names, and of code and JSON that is written"},
};
static_assert(std::size(kLimits) == kResourceCount);

thread_local Budget* current = nullptr;

const ResourceLimit& entry_of(Resource resource) { return kLimits[static_cast<size_t>(resource)]; }

}  // namespace

std::span<const ResourceLimit> resource_limits() { return kLimits; }

void Limits::set(std::string_view name, int64_t value) {
  const auto at = std::find_if(std::begin(kLimits), std::end(kLimits),
                               [&](const ResourceLimit& limit) { return name == limit.name; });
  if (at == std::end(kLimits)) {
    Names known;
    for (const ResourceLimit& limit : kLimits) known.emplace_back(limit.name);
    fail_invalid("there is no limit '{}'; there are: {}", name, nearest_list(name, known));
  }
  require(value >= 0, "the limit '{}' is negative", name);
  given_[static_cast<size_t>(at->resource)] = value;
}

Limits Limits::or_else(const Limits& others) const {
  Limits result = *this;
  for (size_t i = 0; i < kResourceCount; ++i) {
    if (!result.given_[i]) result.given_[i] = others.given_[i];
  }
  return result;
}

Budget::Budget(const Limits& limits, bool is_shared) : limits_(limits), is_shared_(is_shared) { add_input(0); }

void Budget::add_input(uint64_t bytes) {
  constexpr double kMost = 9e18;
  if (is_shared_) input_ += static_cast<double>(bytes);
  for (const ResourceLimit& limit : kLimits) {
    const double most = static_cast<double>(limit.base) + limit.per_byte * input_;
    limit_[static_cast<size_t>(limit.resource)] =
        limits_.find(limit.resource).value_or(static_cast<int64_t>(std::min(most, kMost)));
  }
}

bool Budget::try_take(Resource resource, int64_t amount) {
  const auto at = static_cast<size_t>(resource);
  if (amount < 0 || amount > limit_[at] - used_[at]) return false;
  if (is_shared_) used_[at] += amount;
  return true;
}

void Budget::fail(Resource resource) const {
  const ResourceLimit& limit = entry_of(resource);
  throw LimitError(
      ErrorKind::Unsupported,
      error_text("the conversion takes more than {} {}, out of proportion to its input; --limit {}=... allows more",
                 limit_[static_cast<size_t>(resource)], limit.unit, limit.name));
}

Budget& budget() {
  thread_local Budget alone({}, /*is_shared=*/false);
  return current != nullptr ? *current : alone;
}

BudgetScope::BudgetScope(const Limits& limits, uint64_t input_bytes) : own_(limits), is_outermost_(current == nullptr) {
  if (!is_outermost_) return;
  own_.add_input(input_bytes);
  current = &own_;
}

BudgetScope::~BudgetScope() {
  if (is_outermost_) current = nullptr;
}

OtherBudgetScope::OtherBudgetScope(const Limits& limits) : own_(limits), outer_(std::exchange(current, &own_)) {}

OtherBudgetScope::~OtherBudgetScope() { current = outer_; }

}  // namespace tonnx
