// merge.cpp - types on several ways, and values in the place of others.
#include "formats/torchscript/run/merge.h"

#include <algorithm>
#include <set>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/run/effects.h"

namespace tonnx::torchscript {

using IKind = Item::Kind;

Type joint_type(const Type& a, const Type& b, ScriptCalls& calls) {
  require(a.dtype == b.dtype, "a variable is {} on one way, and {} on another", text_of(a), text_of(b));
  if (a.shape->size() != b.shape->size())
    fail_unsupported("a variable has {} dimensions on one way, and {} on another", a.shape->size(), b.shape->size());
  Type joint = a;
  for (size_t i = 0; i < a.shape->size(); ++i) {
    if ((*a.shape)[i] != (*b.shape)[i]) (*joint.shape)[i] = calls.fresh_size();
  }
  return joint;
}

Value* filler(const Type& type, ScriptCalls& calls) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : *type.shape) sizes.push_back(dim.constant().value_or(1));
  constexpr int64_t kMostElements = 1 << 20;
  int64_t count = 1;
  for (int64_t& size : sizes) {
    if (size > 0 && count > kMostElements / size) size = 1;
    count *= std::max<int64_t>(size, 1);
  }
  Item::Items items;
  for (const int64_t size : sizes) items.push_back(Item::of_int(size));
  const Item dtype = Item::of_int(number_of(type.dtype));
  return calls.call("aten", "zeros", {{Item::of_items(IKind::List, items)}, {{"dtype", dtype}}}).value;
}

namespace {

void rebind(Item& item, const std::map<const Value*, Value*>& now, std::set<const Item::Items*>& seen) {
  if (item.is(IKind::Tensor) && item.value != nullptr) {
    const auto at = now.find(item.value);
    if (at != now.end()) {
      item.value = at->second;
    } else if (now.contains(root_of(item.value))) {
      item = Item::of(IKind::Unset);
    }
  }
  if (!item.items || !seen.insert(item.items.get()).second) return;
  for (Item& each : *item.items) rebind(each, now, seen);
}

}  // namespace

void rebind(Variables& variables, const std::map<const Value*, Value*>& now) {
  std::set<const Item::Items*> seen;
  for (auto& [name, item] : variables) rebind(item, now, seen);
}

void for_each_leaf(Item& item, const std::function<void(Item&)>& visit) {
  budget().take(Resource::Memory, sizeof(Item));
  if (item.is(IKind::Tensor) || item.is_number() || item.is(IKind::Unset)) return visit(item);
  if (!item.items || item.is(IKind::Dict)) return;
  item.items = std::make_shared<Item::Items>(*item.items);
  for (Item& each : *item.items) for_each_leaf(each, visit);
}

Value* tensor_in(const Item& leaf, ScriptCalls& calls) {
  if (leaf.is(IKind::Unset)) return nullptr;
  if (leaf.is(IKind::Tensor) && leaf.value != nullptr) return leaf.value;
  return calls.as_tensor(leaf.is(IKind::Tensor) ? *leaf.number : leaf);
}

}  // namespace tonnx::torchscript
