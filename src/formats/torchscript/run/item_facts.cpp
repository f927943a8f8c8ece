// item_facts.cpp - compares and shows items.
#include "formats/torchscript/run/item_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/budget.h"
#include "base/error.h"

namespace tonnx::torchscript {

using IKind = Item::Kind;

void Item::require_depth(const Items& items, const Items* inside) {
  constexpr size_t kMostDepth = 64;
  if (std::none_of(items.begin(), items.end(), [](const Item& item) { return item.items != nullptr; })) return;
  std::set<const Items*> seen;
  std::vector<const Items*> level{&items};
  for (size_t depth = 0; !level.empty(); ++depth) {
    require(depth < kMostDepth, "lists nest more than {} deep", kMostDepth);
    std::vector<const Items*> next;
    for (const Items* each : level) {
      require(each != inside, "a list contains itself");
      for (const Item& item : *each) {
        if (item.items && seen.insert(item.items.get()).second) next.push_back(item.items.get());
      }
      budget().take(Resource::Steps, static_cast<int64_t>(each->size()));
    }
    level = std::move(next);
  }
}

double real_of(const Item& number) {
  return number.is(IKind::Float) ? number.real : static_cast<double>(number.integer);
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

const Item* find_argument(const Arguments& arguments, size_t position, std::string_view name) {
  if (position < arguments.positional.size()) return &arguments.positional[position];
  for (const auto& [key, item] : arguments.keywords) {
    if (key == name) return &item;
  }
  return nullptr;
}

std::string text_of(const Item& item) {
  if (item.is(IKind::Text) || item.is(IKind::Device)) return item.text;
  if (item.is(IKind::None)) return "None";
  if (!item.is_number() || !item.is_constant()) return "?";
  if (item.is(IKind::Bool)) return item.integer != 0 ? "True" : "False";
  return item.is(IKind::Int) ? std::to_string(item.integer) : fmt::format("{}", item.real);
}

std::optional<bool> equal_items(const Item& a, const Item& b) {
  constexpr int64_t kSteps = 16;  // that a comparison takes, about
  budget().take(Resource::Steps, kSteps);
  if (a.is_number() && b.is_number()) {
    if (!a.is_constant() || !b.is_constant()) return std::nullopt;
    return real_of(a) == real_of(b);
  }
  if (a.kind != b.kind) return false;
  if (a.is(IKind::Text) || a.is(IKind::Device)) return a.text == b.text;
  if (a.is(IKind::None)) return true;
  if (!a.items || !b.items) return std::nullopt;
  if (a.items->size() != b.items->size()) return false;
  for (size_t i = 0; i < a.items->size(); ++i) {
    const auto same = equal_items((*a.items)[i], (*b.items)[i]);
    if (!same || !*same) return same;
  }
  return true;
}

void require_known_count(const Item& list) {
  if (list.may_be_fewer) fail_unsupported("how many tensors chunk gives follows from a size that is open");
}

}  // namespace tonnx::torchscript
