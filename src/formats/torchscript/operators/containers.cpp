// containers.cpp - lists, tuples, dicts and texts of an archive's code, which are known before the model runs.
#include <algorithm>

#include "base/error.h"
#include "formats/torchscript/operators/operators.h"
#include "formats/torchscript/run/item_facts.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr size_t kMostItems = 1 << 20;

void require_length(size_t length) { require(length <= kMostItems, "a list has more than {} items", kMostItems); }

size_t index_in(const Item::Items& items, const Item& index, bool may_be_end = false) {
  if (!index.is(IKind::Int) || !index.is_constant())
    fail_unsupported("which item of a list is meant depends on the run");
  const auto size = static_cast<int64_t>(items.size());
  const int64_t at = index.integer < 0 ? index.integer + size : index.integer;
  require(at >= 0 && (at < size || (may_be_end && at == size)), "item {} of a list of {}", index.integer, size);
  return static_cast<size_t>(at);
}

const Item& argument(const OpCall& call, size_t place) {
  require(place < call.args.size(), "{} of a list lacks an argument", call.op);
  return call.args[place];
}

Item::Items& items_of(const OpCall& call) { return *call.args[0].items; }

/// Before more items become part of a list or dict: it stays small, and holds itself nowhere. Lists that go into lists,
/// which may be inside others, are not many either.
void put_inside(Operators& ops, const Item::Items& items, const Item::Items& more) {
  constexpr size_t kMostNested = 4096;
  require_length(items.size() + more.size());
  Item::require_depth(more, &items);
  for (const Item& item : more) ops.nested += item.items ? 1 : 0;
  require(ops.nested <= kMostNested, "more than {} lists are put into lists", kMostNested);
}

// Dicts: a key, its value, and so on

size_t place_of(const Item::Items& items, const Item& key) {
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (equal_items(items[i], key).value_or(false)) return i;
  }
  return items.size();
}

void put_under(Operators& ops, Item::Items& items, const Item& key, const Item& value) {
  const size_t at = place_of(items, key);
  put_inside(ops, items, {value});
  if (at < items.size()) {
    items[at + 1] = value;
  } else {
    items.push_back(key);
    items.push_back(value);
  }
}

std::optional<Item> dict_length(Operators&, const OpCall& call) {
  return Item::of_int(static_cast<int64_t>(items_of(call).size() / 2));
}

/// The keys (0), or the values (1).
template <size_t First>
std::optional<Item> every_second(Operators&, const OpCall& call) {
  const Item::Items& items = items_of(call);
  Item::Items list;
  for (size_t i = First; i < items.size(); i += 2) list.push_back(items[i]);
  return Item::of_items(IKind::List, std::move(list));
}

std::optional<Item> pairs(Operators&, const OpCall& call) {
  const Item::Items& items = items_of(call);
  Item::Items list;
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    list.push_back(Item::of_items(IKind::Tuple, {items[i], items[i + 1]}));
  return Item::of_items(IKind::List, std::move(list));
}

std::optional<Item> dict_copy(Operators&, const OpCall& call) { return Item::of_items(IKind::Dict, items_of(call)); }

std::optional<Item> clear(Operators&, const OpCall& call) {
  items_of(call).clear();
  return Item::none();
}

std::optional<Item> update(Operators& ops, const OpCall& call) {
  if (call.args.size() < 2) return std::nullopt;
  require(call.args[1].is(IKind::Dict) && call.args[1].items, "a dict is updated by {}", name_of(call.args[1].kind));
  const Item::Items more = *call.args[1].items;
  for (size_t i = 0; i + 1 < more.size(); i += 2) put_under(ops, items_of(call), more[i], more[i + 1]);
  return Item::none();
}

std::optional<Item> has_key(Operators&, const OpCall& call) {
  if (call.args.size() < 2) return std::nullopt;
  return Item::of_bool(place_of(items_of(call), call.args[1]) < items_of(call).size());
}

std::optional<Item> under_key(Operators&, const OpCall& call) {
  if (call.args.size() < 2) return std::nullopt;
  const size_t at = place_of(items_of(call), call.args[1]);
  require(at < items_of(call).size(), "a dict has no key '{}'", call.args[1].text);
  return items_of(call)[at + 1];
}

std::optional<Item> under_key_or(Operators&, const OpCall& call) {
  if (call.args.size() < 2) return std::nullopt;
  const size_t at = place_of(items_of(call), call.args[1]);
  if (at < items_of(call).size()) return items_of(call)[at + 1];
  return call.args.size() > 2 ? call.args[2] : Item::none();
}

std::optional<Item> set_under_key(Operators& ops, const OpCall& call) {
  if (call.args.size() != 3) return std::nullopt;
  put_under(ops, items_of(call), call.args[1], call.args[2]);
  return Item::none();
}

std::optional<Item> take_from_dict(Operators&, const OpCall& call) {
  if (call.args.size() < 2) return std::nullopt;
  Item::Items& items = items_of(call);
  const size_t at = place_of(items, call.args[1]);
  require(at < items.size(), "a dict has no such key");
  const Item taken = items[at + 1];
  items.erase(items.begin() + static_cast<ptrdiff_t>(at), items.begin() + static_cast<ptrdiff_t>(at) + 2);
  return taken;
}

constexpr OpRow kOfDicts[] = {
    {"Delete", take_from_dict}, {"__contains__", has_key},   {"__getitem__", under_key}, {"_set_item", set_under_key},
    {"clear", clear},           {"copy", dict_copy},         {"dict", dict_copy},        {"get", under_key_or},
    {"items", pairs},           {"keys", every_second<0>},   {"len", dict_length},       {"pop", take_from_dict},
    {"update", update},         {"values", every_second<1>},
};

// Lists and tuples

/// The part of chunk that stands at this place from the back, which is another one where there are fewer parts.
Item chunk_from_back(Operators& ops, const Item& first, int64_t place) {
  const Node& node = *first.value->producer;
  const Item self = Item::tensor(node.input(0));
  const Attribute* given = node.find_attribute("dim");
  const Item dim = Item::of_int(given ? *given->value.get<int64_t>() : 0), one = Item::of_int(1);
  const Item chunks = Item::of_int(static_cast<int64_t>(node.outputs().size()));
  const auto ceiling = [&](const Item& a, const Item& b) {
    const Item more = ops.operate("aten", "sub", {{ops.operate("aten", "add", {{a, b}, {}}), one}, {}});
    return ops.operate("aten", "floordiv", {{more, b}, {}});
  };
  const Item size = ops.operate("aten", "size", {{self, dim}, {}});
  const Item each = ceiling(ops.operate("prim", "max", {{size, one}, {}}), chunks);  // of nothing, all parts are empty
  const Item before = ops.operate("aten", "sub", {{ceiling(size, each), Item::of_int(place)}, {}});
  const Item begin = ops.operate("aten", "mul", {{before, each}, {}});
  const Item end = ops.operate("aten", "add", {{begin, each}, {}});
  return ops.operate("aten", "slice", {{self, dim, begin, end, one}, {}});
}

std::optional<Item> list_length(Operators&, const OpCall& call) {
  return Item::of_int(static_cast<int64_t>(items_of(call).size()));
}

std::optional<Item> item_at(Operators& ops, const OpCall& call) {
  if (call.args.size() != 2) return std::nullopt;
  const Item::Items& items = items_of(call);
  const size_t at = index_in(items, call.args[1]);
  if (call.args[1].integer < 0 && call.args[0].may_be_fewer)
    return chunk_from_back(ops, items[0], -call.args[1].integer);
  return items[at];
}

std::optional<Item> append(Operators& ops, const OpCall& call) {
  put_inside(ops, items_of(call), {argument(call, 1)});
  items_of(call).push_back(call.args[1]);
  return call.args[0];
}

std::optional<Item> extend(Operators& ops, const OpCall& call) {
  if (!argument(call, 1).items) return std::nullopt;
  const Item::Items more = *call.args[1].items;
  put_inside(ops, items_of(call), more);
  items_of(call).insert(items_of(call).end(), more.begin(), more.end());
  return Item::none();
}

std::optional<Item> insert(Operators& ops, const OpCall& call) {
  Item::Items& items = items_of(call);
  put_inside(ops, items, {argument(call, 2)});
  const size_t at = index_in(items, argument(call, 1), true);
  items.insert(items.begin() + static_cast<ptrdiff_t>(at), argument(call, 2));
  return Item::none();
}

std::optional<Item> take_from_list(Operators&, const OpCall& call) {
  Item::Items& items = items_of(call);
  const size_t at = index_in(items, call.args.size() > 1 ? call.args[1] : Item::of_int(-1));
  const Item taken = items[at];
  items.erase(items.begin() + static_cast<ptrdiff_t>(at));
  return taken;
}

std::optional<Item> set_item(Operators& ops, const OpCall& call) {
  Item::Items& items = items_of(call);
  put_inside(ops, items, {argument(call, 2)});
  items[index_in(items, argument(call, 1))] = argument(call, 2);
  return call.args[0];
}

std::optional<Item> reverse(Operators&, const OpCall& call) {
  std::reverse(items_of(call).begin(), items_of(call).end());
  return Item::none();
}

std::optional<Item> list_copy(Operators&, const OpCall& call) { return Item::of_items(IKind::List, items_of(call)); }

std::optional<Item> dict_of_pairs(Operators& ops, const OpCall& call) {
  Item dict = Item::of_items(IKind::Dict, {});
  for (const Item& pair : items_of(call)) {
    require(pair.items && pair.items->size() == 2, "a dict is made of something else than pairs");
    put_under(ops, *dict.items, (*pair.items)[0], (*pair.items)[1]);
  }
  return dict;
}

std::optional<Item> has_item(Operators&, const OpCall& call) {
  if (call.args.size() != 2) return std::nullopt;
  for (const Item& item : items_of(call)) {
    const auto same = equal_items(item, call.args[1]);
    if (!same) fail_unsupported("whether a list contains a number that only the run tells is not supported");
    if (*same) return Item::of_bool(true);
  }
  return Item::of_bool(false);
}

std::optional<Item> joined_lists(Operators&, const OpCall& call) {
  if (call.args.size() != 2 || !call.args[1].items) return std::nullopt;
  Item::Items list = items_of(call);
  require_length(list.size() + call.args[1].items->size());
  list.insert(list.end(), call.args[1].items->begin(), call.args[1].items->end());
  if (call.op == "add") return Item::of_items(call.args[0].kind, std::move(list));
  items_of(call) = list;
  return call.args[0];
}

std::optional<Item> repeated_list(Operators&, const OpCall& call) {
  const auto& args = call.args;
  if (args.size() != 2 || !args[1].is(IKind::Int) || !args[1].is_constant()) return std::nullopt;
  const Item::Items& items = items_of(call);
  require(args[1].integer <= 0 || items.size() <= kMostItems / static_cast<size_t>(args[1].integer),
          "a list is repeated {} times", args[1].integer);
  Item::Items list;
  for (int64_t i = 0; i < args[1].integer; ++i) list.insert(list.end(), items.begin(), items.end());
  return Item::of_items(IKind::List, std::move(list));
}

std::optional<Item> part_of_list(Operators&, const OpCall& call) {
  const auto& args = call.args;
  const Item::Items& items = items_of(call);
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
  return Item::of_items(args[0].kind, std::move(list));
}

std::optional<Item> extreme_item(Operators& ops, const OpCall& call) {
  const Item::Items& items = items_of(call);
  if (call.args.size() != 1 || items.empty() || !items[0].is_number()) return std::nullopt;
  Item best = items[0];
  for (const Item& item : items) best = ops.arithmetic(call.op, best, item);
  return best;
}

std::optional<Item> all_or_any(Operators& ops, const OpCall& call) {
  if (call.args.size() != 1) return std::nullopt;
  Item flag = Item::of_bool(call.op == "all");
  for (const Item& item : items_of(call)) flag = ops.both(flag, ops.converted(item, IKind::Bool), call.op == "any");
  return flag;
}

std::optional<Item> sum_of_list(Operators& ops, const OpCall& call) {
  const Item::Items& items = items_of(call);
  if (call.args.size() != 1 || !(items.empty() || items[0].is_number())) return std::nullopt;
  Item sum = Item::of_int(0);
  for (const Item& item : items) sum = ops.arithmetic("add", sum, item);
  return sum;
}

constexpr OpRow kOfLists[] = {
    {"Delete", take_from_list}, {"__contains__", has_item}, {"__getitem__", item_at}, {"_set_item", set_item},
    {"add", joined_lists},      {"add_", joined_lists},     {"all", all_or_any},      {"any", all_or_any},
    {"append", append},         {"clear", clear},           {"copy", list_copy},      {"dict", dict_of_pairs},
    {"extend", extend},         {"insert", insert},         {"len", list_length},     {"list", list_copy},
    {"max", extreme_item},      {"min", extreme_item},      {"mul", repeated_list},   {"pop", take_from_list},
    {"reverse", reverse},       {"slice", part_of_list},    {"sum", sum_of_list},
};

// Lists that a loop has stacked along a first dimension

std::optional<Item> stack_length(Operators& ops, const OpCall& call) {
  return ops.calls.size(Item::tensor(call.args[0].value), 0);
}

std::optional<Item> item_of_stack(Operators& ops, const OpCall& call) {
  return ops.calls.call("aten", "select", {{Item::tensor(call.args[0].value), Item::of_int(0), call.args[1]}, {}});
}

constexpr OpRow kOfStacks[] = {
    {"__getitem__", item_of_stack},
    {"len", stack_length},
};

// Texts

std::optional<Item> text_length(Operators&, const OpCall& call) {
  return Item::of_int(static_cast<int64_t>(call.args[0].text.size()));
}

std::optional<Item> joined_texts(Operators&, const OpCall& call) {
  const auto& args = call.args;
  if (args.size() != 2 || !args[1].is(IKind::Text)) return std::nullopt;
  require(args[0].text.size() + args[1].text.size() <= kMostItems, "a text has more than {} characters", kMostItems);
  return Item::of_text(args[0].text + args[1].text);
}

std::optional<Item> has_text(Operators&, const OpCall& call) {
  if (call.args.size() != 2) return std::nullopt;
  return Item::of_bool(call.args[0].text.find(call.args[1].text) != std::string::npos);
}

std::optional<Item> text_starts(Operators&, const OpCall& call) {
  if (call.args.size() != 2) return std::nullopt;
  return Item::of_bool(call.args[0].text.starts_with(call.args[1].text));
}

std::optional<Item> text_ends(Operators&, const OpCall& call) {
  if (call.args.size() != 2) return std::nullopt;
  return Item::of_bool(call.args[0].text.ends_with(call.args[1].text));
}

constexpr OpRow kOfTexts[] = {
    {"__contains__", has_text}, {"add", joined_texts},       {"endswith", text_ends},
    {"len", text_length},       {"startswith", text_starts},
};

/// eq and ne of two things that are no tensors.
std::optional<Item> equality(Operators& ops, const OpCall& call) {
  const Item &a = call.args[0], &b = call.args[1];
  if (const auto same = equal_items(a, b)) return Item::of_bool(*same == (call.op == "eq"));
  if (!a.items || !b.items) return std::nullopt;
  Item all = Item::of_bool(true);
  for (size_t i = 0; i < a.items->size(); ++i)
    all = ops.both(all, ops.operate("aten", "eq", {{(*a.items)[i], (*b.items)[i]}, {}}), false);
  return call.op == "eq" ? all : ops.negated(all);
}

bool are_compared(const OpCall& call) {
  return is_one_of(call.op, {"eq", "ne"}) && call.args.size() == 2 && !call.args[0].is(IKind::Tensor) &&
         !call.args[1].is(IKind::Tensor);
}

/// A list or a dict of nothing.
std::optional<Item> of_nothing(const OpCall& call) {
  if (call.op == "dict") return Item::of_items(IKind::Dict, {});
  return call.op == "list" ? std::optional(Item::of_items(IKind::List, {})) : std::nullopt;
}

}  // namespace

bool is_of_containers(std::string_view op) {
  const OpTable tables[] = {kOfDicts, kOfLists, kOfStacks, kOfTexts};
  return std::any_of(std::begin(tables), std::end(tables),
                     [&](OpTable table) { return find_named(table, op) != nullptr; });
}

std::optional<Item> of_containers(Operators& ops, const OpCall& call) {
  if (call.args.empty()) return of_nothing(call);
  const Item& of = call.args[0];
  if (of.is(IKind::Text) && call.args.size() <= 2) {
    if (auto made = from_table(kOfTexts, ops, call)) return made;
  }
  if (are_compared(call)) return equality(ops, call);
  if (of.is(IKind::Dict)) return from_table(kOfDicts, ops, call);
  if (!of.is(IKind::List) && !of.is(IKind::Tuple)) return std::nullopt;
  if (!of.items) return from_table(kOfStacks, ops, call);
  if (call.op != "__getitem__") require_known_count(of);
  return from_table(kOfLists, ops, call);
}

}  // namespace tonnx::torchscript
