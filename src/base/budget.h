// budget.h - what one conversion may use: memory, steps, nodes and text, in proportion to its input.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "base/checked_int.h"

namespace tonnx {

enum class Resource : uint8_t { Memory, Steps, Nodes, Text };
inline constexpr size_t kResourceCount = 4;

/// How much of a resource there is: `base`, and `per_byte` for each byte of the input.
struct ResourceLimit {
  Resource resource;
  const char* name;  // as the option --limit calls it
  int64_t base;
  double per_byte;
  const char* unit;      // as it stands in an error
  const char* sentence;  // what is counted
};
std::span<const ResourceLimit> resource_limits();

/// Limits that the user sets, in place of those that follow from the size of the input.
class Limits {
 public:
  /// Throws InvalidModel where there is no limit of that name, or the value is negative.
  void set(std::string_view name, int64_t value);
  /// These, and the others where there are none.
  Limits or_else(const Limits& others) const;
  std::optional<int64_t> find(Resource resource) const { return given_[static_cast<size_t>(resource)]; }

 private:
  std::array<std::optional<int64_t>, kResourceCount> given_;
};

/// What is left to one conversion. Nothing is given back: it is the sum of all that was made that is limited.
class Budget {
 public:
  explicit Budget(const Limits& limits = {}, bool is_shared = true);

  /// The input is larger by so many bytes, and so are the limits.
  void add_input(uint64_t bytes);
  /// False, and nothing is taken, where there is not enough left: what is not necessary is left undone then.
  bool try_take(Resource resource, int64_t amount);
  /// Throws Unsupported, with a text that names the limit, where there is not enough left.
  void take(Resource resource, int64_t amount) {
    if (!try_take(resource, amount)) [[unlikely]]
      fail(resource);
  }

 private:
  [[noreturn]] void fail(Resource resource) const;

  Limits limits_;
  double input_ = 0;
  bool is_shared_;  // by all that is taken; otherwise each amount is compared with the whole
  std::array<int64_t, kResourceCount> limit_{}, used_{};
};

/// The budget of the conversion that this thread is at. Where there is none, one in which each amount stands alone.
Budget& budget();

/// Opens a budget for one conversion in this thread. Inside another one it is that one.
class BudgetScope {
 public:
  explicit BudgetScope(const Limits& limits = {}, uint64_t input_bytes = 0);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  Budget own_;
  bool is_outermost_;
};

/// A budget beside that of the conversion, for work that is no part of it, such as a check of what it made.
class OtherBudgetScope {
 public:
  explicit OtherBudgetScope(const Limits& limits);
  ~OtherBudgetScope();
  OtherBudgetScope(const OtherBudgetScope&) = delete;
  OtherBudgetScope& operator=(const OtherBudgetScope&) = delete;

 private:
  Budget own_;
  Budget* outer_;
};

/// How many elements a list of these sizes has; its room is taken from the budget before anybody builds it. Throws
/// InvalidModel where a size is negative or the product is beyond 64 bits.
template <class T>
size_t room_for(std::initializer_list<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 0) [[unlikely]]
      fail_overflow();
    count = checked_mul(count, size);
  }
  budget().take(Resource::Memory, checked_mul(count, static_cast<int64_t>(sizeof(T))));
  return static_cast<size_t>(count);
}

}  // namespace tonnx
