// script_containers.cpp - lists, tuples, dicts and texts of an archive's code, which are known before the model runs.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/item_facts.h"

namespace tonnx::torchscript {
namespace {

constexpr size_t kMostItems = 1 << 20;

void require_length(size_t length) { require(length <= kMostItems, "a list has more than {} items", kMostItems); }

using IKind = Item::Kind;

size_t index_in(const Item::Items& items, const Item& index, bool may_be_end = false) {
  if (!index.is(IKind::Int) || !index.is_constant())
    fail_unsupported("which item of a list is meant depends on the run");
  const auto size = static_cast<int64_t>(items.size());
  const int64_t at = index.integer < 0 ? index.integer + size : index.integer;
  require(at >= 0 && (at < size || (may_be_end && at == size)), "item {} of a list of {}", index.integer, size);
  return static_cast<size_t>(at);
}

}  // namespace

/// The part of chunk that stands at this place from the back, which is another one where there are fewer parts.
Item Interpreter::chunk_from_back(const Item& first, int64_t place) {
  const Node& node = *first.value->producer;
  const Item self = Item::tensor(node.input(0));
  const Attribute* given = node.find_attribute("dim");
  const Item dim = Item::of_int(given ? *given->value.get<int64_t>() : 0), one = Item::of_int(1);
  const Item chunks = Item::of_int(static_cast<int64_t>(node.outputs().size()));
  const auto ceiling = [&](const Item& a, const Item& b) {
    const Item more = operate("aten", "sub", {{operate("aten", "add", {{a, b}, {}}), one}, {}});
    return operate("aten", "floordiv", {{more, b}, {}});
  };
  const Item size = operate("aten", "size", {{self, dim}, {}});
  const Item each = ceiling(operate("prim", "max", {{size, one}, {}}), chunks);  // of nothing, all parts are empty
  const Item before = operate("aten", "sub", {{ceiling(size, each), Item::of_int(place)}, {}});
  const Item begin = operate("aten", "mul", {{before, each}, {}});
  const Item end = operate("aten", "add", {{begin, each}, {}});
  return operate("aten", "slice", {{self, dim, begin, end, one}, {}});
}

std::optional<Item> Interpreter::of_container(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (args.empty() && (op == "dict" || op == "list"))
    return Item::of_items(op == "dict" ? IKind::Dict : IKind::List, {});
  if (args.empty()) return std::nullopt;
  const Item& of = args[0];
  if (of.is(IKind::Text) && args.size() <= 2) {
    if (op == "len") return Item::of_int(static_cast<int64_t>(of.text.size()));
    if (op == "add" && args[1].is(IKind::Text)) {
      require(of.text.size() + args[1].text.size() <= kMostItems, "a text has more than {} characters", kMostItems);
      return Item::of_text(of.text + args[1].text);
    }
    if (op == "__contains__" && args.size() == 2) return Item::of_bool(of.text.find(args[1].text) != std::string::npos);
    if (op == "startswith" && args.size() == 2) return Item::of_bool(of.text.starts_with(args[1].text));
    if (op == "endswith" && args.size() == 2) return Item::of_bool(of.text.ends_with(args[1].text));
  }
  if (is_one_of(op, {"eq", "ne"}) && args.size() == 2 && !(args[0].is(IKind::Tensor) || args[1].is(IKind::Tensor))) {
    const auto same = equal_items(args[0], args[1]);
    if (same) return Item::of_bool(*same == (op == "eq"));
    if (!args[0].items || !args[1].items) return std::nullopt;
    Item all = Item::of_bool(true);
    for (size_t i = 0; i < args[0].items->size(); ++i)
      all = both(all, operate("aten", "eq", {{(*args[0].items)[i], (*args[1].items)[i]}, {}}), false);
    return op == "eq" ? all : negated(all);
  }
  const bool is_sequence = of.is(IKind::List) || of.is(IKind::Tuple);
  if (is_sequence && !of.items) {  // stacked by a loop
    const Item all = Item::tensor(of.value);
    if (op == "len") return calls_.size(all, 0);
    if (op == "__getitem__") return calls_.call("aten", "select", {{all, Item::of_int(0), args[1]}, {}});
    return std::nullopt;
  }
  if (!is_sequence && !of.is(IKind::Dict)) return std::nullopt;
  if (of.is(IKind::Dict)) return of_dict(op, args);
  return of_list(op, args);
}

/// Before more items become part of a list or dict: it stays small, and holds itself nowhere. Lists that go into lists,
/// which may be inside others, are not many either.
void Interpreter::put_inside(const Item::Items& items, const Item::Items& more) {
  constexpr size_t kMostNested = 4096;
  require_length(items.size() + more.size());
  Item::require_depth(more, &items);
  for (const Item& item : more) nested_ += item.items ? 1 : 0;
  require(nested_ <= kMostNested, "more than {} lists are put into lists", kMostNested);
}

/// Lists and tuples.
std::optional<Item> Interpreter::of_list(std::string_view op, const Item::Items& args) {
  const Item& of = args[0];
  Item::Items& items = *of.items;
  const auto argument = [&](size_t place) -> const Item& {
    require(place < args.size(), "{} of a list lacks an argument", op);
    return args[place];
  };
  if (op != "__getitem__") require_known_count(of);
  if (op == "len") return Item::of_int(static_cast<int64_t>(items.size()));
  if (op == "__getitem__" && args.size() == 2) {
    const size_t at = index_in(items, args[1]);
    if (args[1].integer < 0 && of.may_be_fewer) return chunk_from_back(items[0], -args[1].integer);
    return items[at];
  }
  if (op == "append") {
    put_inside(items, {argument(1)});
    items.push_back(args[1]);
    return of;
  }
  if (op == "extend" && argument(1).items) {
    const Item::Items more = *args[1].items;
    put_inside(items, more);
    items.insert(items.end(), more.begin(), more.end());
    return Item::none();
  }
  if (op == "insert") {
    put_inside(items, {argument(2)});
    items.insert(items.begin() + static_cast<ptrdiff_t>(index_in(items, argument(1), true)), argument(2));
    return Item::none();
  }
  if (op == "pop" || op == "Delete") {
    const size_t at = index_in(items, args.size() > 1 ? args[1] : Item::of_int(-1));
    const Item taken = items[at];
    items.erase(items.begin() + static_cast<ptrdiff_t>(at));
    return taken;
  }
  if (op == "_set_item") {
    put_inside(items, {argument(2)});
    items[index_in(items, argument(1))] = argument(2);
    return of;
  }
  if (op == "clear") {
    items.clear();
    return Item::none();
  }
  if (op == "reverse") {
    std::reverse(items.begin(), items.end());
    return Item::none();
  }
  if (op == "copy" || op == "list") return Item::of_items(IKind::List, items);
  if (op == "dict") {  // of pairs
    Item dict = Item::of_items(IKind::Dict, {});
    for (const Item& pair : items) {
      require(pair.items && pair.items->size() == 2, "a dict is made of something else than pairs");
      of_dict("_set_item", {dict, (*pair.items)[0], (*pair.items)[1]});
    }
    return dict;
  }
  if (op == "__contains__" && args.size() == 2) {
    for (const Item& item : items) {
      const auto same = equal_items(item, args[1]);
      if (!same) fail_unsupported("whether a list contains a number that only the run tells is not supported");
      if (*same) return Item::of_bool(true);
    }
    return Item::of_bool(false);
  }
  if ((op == "add" || op == "add_") && args.size() == 2 && args[1].items) {
    Item::Items list = items;
    require_length(list.size() + args[1].items->size());
    list.insert(list.end(), args[1].items->begin(), args[1].items->end());
    if (op == "add_") items = list;
    return op == "add_" ? of : Item::of_items(of.kind, std::move(list));
  }
  if (op == "mul" && args.size() == 2 && args[1].is(IKind::Int) && args[1].is_constant()) {
    Item::Items list;
    require(args[1].integer <= 0 || items.size() <= kMostItems / static_cast<size_t>(args[1].integer),
            "a list is repeated {} times", args[1].integer);
    for (int64_t i = 0; i < args[1].integer; ++i) list.insert(list.end(), items.begin(), items.end());
    return Item::of_items(IKind::List, std::move(list));
  }
  if (op == "slice") {
    const auto size = static_cast<int64_t>(items.size());
    const int64_t step = args.size() > 3 ? args[3].integer : 1;
    require(step != 0, "a list is sliced by steps of 0");
    const int64_t first = step > 0 ? 0 : -1;  // the places that ends are moved to
    const auto end = [&](size_t i, int64_t otherwise) {
      if (i >= args.size() || args[i].is(IKind::None)) return otherwise;
      if (!args[i].is_constant()) fail_unsupported("which items of a list are meant depends on the run");
      const int64_t at = args[i].integer;
      return std::clamp<int64_t>(at < 0 ? at + size : at, first, size + first);
    };
    const int64_t begin = end(1, step > 0 ? 0 : size - 1), stop = end(2, step > 0 ? size : -1);
    Item::Items list;
    for (int64_t i = begin; step > 0 ? i < stop : i > stop; i += step) list.push_back(items[static_cast<size_t>(i)]);
    return Item::of_items(of.kind, std::move(list));
  }
  if ((op == "min" || op == "max") && args.size() == 1 && !items.empty() && items[0].is_number()) {
    Item best = items[0];
    for (const Item& item : items) best = arithmetic(op, best, item);
    return best;
  }
  if ((op == "all" || op == "any") && args.size() == 1) {
    Item flag = Item::of_bool(op == "all");
    for (const Item& item : items) flag = both(flag, converted(item, IKind::Bool), op == "any");
    return flag;
  }
  if (op == "sum" && args.size() == 1 && (items.empty() || items[0].is_number())) {
    Item sum = Item::of_int(0);
    for (const Item& item : items) sum = arithmetic("add", sum, item);
    return sum;
  }
  return std::nullopt;
}

std::optional<Item> Interpreter::of_dict(std::string_view op, const Item::Items& args) {
  Item::Items& items = *args[0].items;
  const auto place = [&](const Item& key) {
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (equal_items(items[i], key).value_or(false)) return i;
    }
    return items.size();
  };
  const auto every = [&](size_t first) {
    Item::Items list;
    for (size_t i = first; i < items.size(); i += 2) list.push_back(items[i]);
    return Item::of_items(IKind::List, std::move(list));
  };
  if (op == "len") return Item::of_int(static_cast<int64_t>(items.size() / 2));
  if (op == "keys") return every(0);
  if (op == "values") return every(1);
  if (op == "items") {
    Item::Items list;
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      list.push_back(Item::of_items(IKind::Tuple, {items[i], items[i + 1]}));
    return Item::of_items(IKind::List, std::move(list));
  }
  if (op == "copy" || op == "dict") return Item::of_items(IKind::Dict, items);
  if (op == "clear") {
    items.clear();
    return Item::none();
  }
  if (args.size() < 2) return std::nullopt;
  if (op == "update") {
    require(args[1].is(IKind::Dict) && args[1].items, "a dict is updated by {}", name_of(args[1].kind));
    const Item::Items more = *args[1].items;
    for (size_t i = 0; i + 1 < more.size(); i += 2) of_dict("_set_item", {args[0], more[i], more[i + 1]});
    return Item::none();
  }
  const size_t at = place(args[1]);
  if (op == "__contains__") return Item::of_bool(at < items.size());
  if (op == "__getitem__") {
    require(at < items.size(), "a dict has no key '{}'", args[1].text);
    return items[at + 1];
  }
  if (op == "get") return at < items.size() ? items[at + 1] : args.size() > 2 ? args[2] : Item::none();
  if (op == "_set_item" && args.size() == 3) {
    put_inside(items, {args[2]});
    if (at < items.size()) {
      items[at + 1] = args[2];
    } else {
      items.push_back(args[1]);
      items.push_back(args[2]);
    }
    return Item::none();
  }
  if (op == "Delete" || op == "pop") {
    require(at < items.size(), "a dict has no such key");
    const Item taken = items[at + 1];
    items.erase(items.begin() + static_cast<ptrdiff_t>(at), items.begin() + static_cast<ptrdiff_t>(at) + 2);
    return taken;
  }
  return std::nullopt;
}

}  // namespace tonnx::torchscript
