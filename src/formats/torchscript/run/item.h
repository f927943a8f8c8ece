// item.h - what an expression of an archive's code gives: a constant, a value of the graph, or something made of both.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/torchscript/source/syntax.h"
#include "ir/graph.h"

namespace tonnx::torchscript {

struct Object;

/// Lists, dicts and objects are shared: who changes one changes it for all who have it.
struct Item {
  enum class Kind : uint8_t {
    None,
    Tensor,    // value; `number`: the number that it was made of
    Int,       // integer; or value: a number of the graph, or a tensor of one element
    Float,     // real, or value
    Bool,      // integer, or value
    Text,      // text
    Device,    // text
    List,      // items; or value: all of them stacked along a first dimension
    Tuple,     // items, and object where it is a NamedTuple
    Dict,      // items: a key, its value, and so on
    Object,    // object
    Callable,  // text: the name of a function or a class of the archive
    Unset,     // a variable that nobody reads on this way
    Refused,   // what cannot be read; text: why, where nobody has said it yet
  };
  using Items = std::vector<Item>;

  Kind kind = Kind::None;
  Value* value = nullptr;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::shared_ptr<Items> items;
  std::shared_ptr<Object> object;
  std::shared_ptr<const Item> number;
  bool may_be_fewer = false;         // of what chunk gives of an open size: the run may give less items than these
  std::optional<bool> unless_empty;  // of a bool that asks whether a size is 0: what it is where it is not

  static Item none() { return {}; }
  static Item of(Kind kind) {
    Item made;
    made.kind = kind;
    return made;
  }
  static Item tensor(Value* value) {
    Item made = of(Kind::Tensor);
    made.value = value;
    return made;
  }
  static Item of_int(int64_t integer) {
    Item made = of(Kind::Int);
    made.integer = integer;
    return made;
  }
  static Item of_bool(bool flag) {
    Item made = of(Kind::Bool);
    made.integer = flag ? 1 : 0;
    return made;
  }
  static Item of_float(double real) {
    Item made = of(Kind::Float);
    made.real = real;
    return made;
  }
  static Item of_text(std::string text) {
    Item made = of(Kind::Text);
    made.text = std::move(text);
    return made;
  }
  static Item of_items(Kind kind, Items items) {
    require_depth(items);
    Item made = of(kind);
    made.items = std::make_shared<Items>(std::move(items));
    return made;
  }
  static Item refused(std::string why = {}) {
    Item made = of(Kind::Refused);
    made.text = std::move(why);
    return made;
  }
  /// A number of the graph.
  static Item of_value(Kind kind, Value* value) {
    Item made = of(kind);
    made.value = value;
    return made;
  }

  /// Lists inside lists are few: whoever walks over them recurses. None holds `inside`, the list that they go into.
  static void require_depth(const Items& items, const Items* inside = nullptr);

  bool is(Kind k) const { return kind == k; }
  bool is_number() const { return kind == Kind::Int || kind == Kind::Float || kind == Kind::Bool; }
  /// Known before the model runs.
  bool is_constant() const { return value == nullptr; }
};

struct Object {
  const Class* type = nullptr;
  std::string path;  // in the tree of modules, with dots; empty for the module itself
  bool is_module = false;
  int level = 0;  // how many branches and loops that only the run decides were open when it was made
  std::map<std::string, Item, std::less<>> attributes;
};

/// What kind of thing it is, for errors: `an int`.
const char* name_of(Item::Kind kind);

}  // namespace tonnx::torchscript
