// merge.h - what branches and loops share: variables on several ways, and the types that they have on all of
// them.
#pragma once
#include <functional>
#include <map>
#include <memory>

#include "formats/torchscript/run/interpreter.h"

namespace tonnx::torchscript {

/// Lists and dicts of their own, so that what is done to them on one way is not seen on another.
class Copier {
 public:
  Item copy(const Item& item) {
    Item made = item;
    if (!item.items) return made;
    auto [at, is_new] = known_.try_emplace(item.items.get(), nullptr);
    if (is_new) {
      at->second = std::make_shared<Item::Items>();
      const auto copied = at->second;
      for (const Item& each : *item.items) copied->push_back(copy(each));
      made.items = copied;
    } else {
      made.items = at->second;
    }
    return made;
  }
  Variables copy(const Variables& variables) {
    Variables made;
    for (const auto& [name, item] : variables) made.emplace(name, copy(item));
    return made;
  }

 private:
  std::map<const Item::Items*, std::shared_ptr<Item::Items>> known_;
};

/// Shapes that both have; sizes that differ are new ones. Throws where a variable changes its element type or rank.
Type joint_type(const Type& a, const Type& b, ScriptCalls& calls);

/// A tensor that nobody looks at, of the type that another way gives.
Value* filler(const Type& type, ScriptCalls& calls);

/// Other values in the place of those that were written to. Views of them that were made before have no value any more.
void rebind(Variables& variables, const std::map<const Value*, Value*>& now);

/// The leaves of what a variable holds, each of which a loop can carry: tensors and numbers.
void for_each_leaf(Item& item, const std::function<void(Item&)>& visit);

/// The tensor that carries a leaf; null for a variable that has no value yet.
Value* tensor_in(const Item& leaf, ScriptCalls& calls);

}  // namespace tonnx::torchscript
