// script_operators.cpp - operators of an archive's code that are no nodes: numbers, lists, texts, questions to tensors.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/interpreter.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int64_t kMostListed = 1024;  // elements of a tensor that becomes a list

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

/// Python's division and remainder: the quotient is rounded down.
int64_t floor_of(int64_t a, int64_t b) {
  require(b != 0 && !(a == INT64_MIN && b == -1), "the code divides {} by {}", a, b);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::optional<Item> folded_ints(std::string_view op, int64_t a, int64_t b) {
  if (op == "add") return Item::of_int(checked_add(a, b));
  if (op == "sub") return Item::of_int(checked_add(a, checked_mul(b, -1)));
  if (op == "mul") return Item::of_int(checked_mul(a, b));
  if (op == "floordiv") return Item::of_int(floor_of(a, b));
  if (op == "remainder") return Item::of_int(checked_add(a, checked_mul(checked_mul(floor_of(a, b), b), -1)));
  if (op == "__and__") return Item::of_int(a & b);
  if (op == "__or__") return Item::of_int(a | b);
  if (op == "__xor__") return Item::of_int(a ^ b);
  if (op == "__lshift__" && b >= 0 && b < 63) return Item::of_int(checked_mul(a, int64_t{1} << b));
  if (op == "__rshift__" && b >= 0 && b < 64) return Item::of_int(a >> b);
  if (op == "min") return Item::of_int(std::min(a, b));
  if (op == "max") return Item::of_int(std::max(a, b));
  return std::nullopt;
}

std::optional<Item> folded_floats(std::string_view op, double a, double b) {
  if (op == "add") return Item::of_float(a + b);
  if (op == "sub") return Item::of_float(a - b);
  if (op == "mul") return Item::of_float(a * b);
  if (op == "div") return Item::of_float(a / b);
  if (op == "floordiv") return Item::of_float(std::floor(a / b));
  if (op == "remainder") return Item::of_float(a - std::floor(a / b) * b);
  if (op == "pow") return Item::of_float(std::pow(a, b));
  if (op == "min") return Item::of_float(std::min(a, b));
  if (op == "max") return Item::of_float(std::max(a, b));
  return std::nullopt;
}

bool folded_order(std::string_view op, double a, double b) {
  if (op == "lt") return a < b;
  if (op == "le") return a <= b;
  if (op == "gt") return a > b;
  if (op == "ge") return a >= b;
  return (a == b) == (op == "eq");
}

/// What the form of two sizes tells of their order.
std::optional<bool> order_of(std::string_view op, const Dim& a, const Dim& b) {
  const Dim difference = a - b;
  if (const auto known = difference.constant()) return folded_order(op, static_cast<double>(*known), 0);
  if ((difference - Dim(1)).is_non_negative()) return folded_order(op, 1, 0);
  if ((b - a - Dim(1)).is_non_negative()) return folded_order(op, -1, 0);
  if (difference.is_non_negative() && (op == "ge" || op == "lt")) return op == "ge";
  if ((b - a).is_non_negative() && (op == "le" || op == "gt")) return op == "le";
  return std::nullopt;
}

/// As str() writes it; a question mark for what only the run tells.
std::string text_of(const Item& item) {
  if (item.is(IKind::Text) || item.is(IKind::Device)) return item.text;
  if (item.is(IKind::None)) return "None";
  if (!item.is_number() || !item.is_constant()) return "?";
  if (item.is(IKind::Bool)) return item.integer != 0 ? "True" : "False";
  return item.is(IKind::Int) ? std::to_string(item.integer) : fmt::format("{}", item.real);
}

std::string formatted(const std::vector<Item>& args) {
  if (args.empty()) return {};
  std::string result;
  size_t next = 1;
  const std::string& pattern = args[0].text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "{}") == 0 && next < args.size()) {
      result += text_of(args[next++]);
      ++i;
    } else {
      result += pattern[i];
    }
  }
  return result;
}

/// Whether two things that are known are equal; nothing where only the run tells.
std::optional<bool> equal_items(const Item& a, const Item& b) {
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

size_t index_in(const Item::Items& items, const Item& index, bool may_be_end = false) {
  require(index.is(IKind::Int) && index.is_constant(), "which item of a list is meant depends on the run");
  const auto size = static_cast<int64_t>(items.size());
  const int64_t at = index.integer < 0 ? index.integer + size : index.integer;
  require(at >= 0 && (at < size || (may_be_end && at == size)), "item {} of a list of {}", index.integer, size);
  return static_cast<size_t>(at);
}

}  // namespace

Item Interpreter::negated(const Item& flag) {
  if (flag.is_constant()) return Item::of_bool(flag.integer == 0);
  if (!flag.value->type.is_tensor()) return calls_.number("sym_not", {flag}, IKind::Bool);
  return Item::of_value(IKind::Bool, calls_.call("aten", "logical_not", {{Item::tensor(flag.value)}, {}}).value);
}

Item Interpreter::both(const Item& a, const Item& b, bool is_or) {
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (one->is_constant()) return (one->integer != 0) == is_or ? Item::of_bool(is_or) : *other;
  }
  if (!a.value->type.is_tensor() && !b.value->type.is_tensor())
    return calls_.number(is_or ? "or_" : "and_", {a, b}, IKind::Bool);
  const Arguments flags{{Item::tensor(calls_.as_tensor(a)), Item::tensor(calls_.as_tensor(b))}, {}};
  return Item::of_value(IKind::Bool, calls_.call("aten", is_or ? "logical_or" : "logical_and", flags).value);
}

Item Interpreter::arithmetic(std::string_view op, const Item& a, const Item& b) {
  const bool is_float = a.is(IKind::Float) || b.is(IKind::Float) || op == "div" || op == "pow";
  if (a.is_constant() && b.is_constant()) {
    const auto made = is_float ? folded_floats(op, real_of(a), real_of(b)) : folded_ints(op, a.integer, b.integer);
    if (!made) fail_unsupported("{} of numbers is not supported", op);
    return *made;
  }
  const IKind kind = is_float ? IKind::Float : IKind::Int;
  const auto is_tensor = [](const Item& item) { return !item.is_constant() && item.value->type.is_tensor(); };
  if (is_tensor(a) || is_tensor(b)) {
    const std::string_view name = op == "floordiv" ? "floor_divide"
                                  : op == "min"    ? "minimum"
                                  : op == "max"    ? "maximum"
                                                   : op;
    const bool by_number = is_tensor(a) && b.is_constant() && op != "min" && op != "max";
    const Item other = by_number ? b : Item::tensor(calls_.as_tensor(b));
    return Item::of_value(kind, calls_.call("aten", name, {{Item::tensor(calls_.as_tensor(a)), other}, {}}).value);
  }
  const std::string_view name = op == "remainder" ? "mod"
                                : op == "div"     ? "truediv"
                                : op == "min"     ? "sym_min"
                                : op == "max"     ? "sym_max"
                                                  : op;
  return calls_.number(name, {a, b}, kind);
}

Item Interpreter::compare(std::string_view op, const Item& a, const Item& b) {
  if (a.is_constant() && b.is_constant()) return Item::of_bool(folded_order(op, real_of(a), real_of(b)));
  const auto is_tensor = [](const Item& item) { return !item.is_constant() && item.value->type.is_tensor(); };
  if (is_tensor(a) || is_tensor(b)) {
    const Item other = is_tensor(a) && b.is_constant() ? b : Item::tensor(calls_.as_tensor(b));
    return Item::of_value(IKind::Bool, calls_.call("aten", op, {{Item::tensor(calls_.as_tensor(a)), other}, {}}).value);
  }
  if (a.is(IKind::Int) && b.is(IKind::Int)) {
    if (const auto known = order_of(op, ScriptCalls::dim_of(a), ScriptCalls::dim_of(b))) return Item::of_bool(*known);
  }
  return calls_.number(op, {a, b}, IKind::Bool);
}

Item Interpreter::converted(const Item& of, IKind kind) {
  if (of.is(IKind::Tensor)) {
    if (of.number) return converted(*of.number, kind);
    const Type& type = of.value->type;
    if (of.value->constant && of.value->producer == nullptr && of.value->constant->count() == 1) {
      const double value = element_as_double(*of.value->constant, 0);
      if (kind == IKind::Float) return Item::of_float(value);
      if (kind == IKind::Bool) return Item::of_bool(value != 0);
      return Item::of_int(element_as_int(*of.value->constant, 0));
    }
    Item scalar = of;
    if (type.shape->size() > 0) scalar = calls_.call("aten", "reshape", {{of, Item::of_items(IKind::List, {})}, {}});
    const DType wanted = kind == IKind::Int ? DType::Int64 : kind == IKind::Bool ? DType::Bool : type.dtype;
    if (type.dtype != wanted && !(kind == IKind::Float && is_float(type.dtype))) {
      const DType target = kind == IKind::Float ? DType::Float32 : wanted;
      scalar = calls_.call("aten", "to", {{scalar, Item::of_int(number_of(target))}, {}});
    }
    return Item::of_value(kind, scalar.value);
  }
  if (of.kind == kind) return of;
  if (of.is(IKind::Text)) fail_unsupported("a text is no number");
  require(of.is_number(), "{} is no number", name_of(of.kind));
  if (of.is_constant()) {
    if (kind == IKind::Float) return Item::of_float(real_of(of));
    if (kind == IKind::Bool) return Item::of_bool(real_of(of) != 0);
    return Item::of_int(of.is(IKind::Float) ? static_cast<int64_t>(std::trunc(of.real)) : of.integer);
  }
  if (of.value->type.is_tensor()) return converted(Item::tensor(of.value), kind);
  if (kind == IKind::Bool) return compare("ne", of, Item::of_int(0));
  return calls_.number(kind == IKind::Int ? "sym_int" : "sym_float", {of}, kind);
}

std::optional<Item> Interpreter::of_numbers(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (args.empty() || !std::all_of(args.begin(), args.end(), [](const Item& item) { return item.is_number(); }))
    return std::nullopt;
  const Item& a = args[0];
  if (args.size() == 2) {
    const Item& b = args[1];
    if (is_one_of(op, {"eq", "ne", "lt", "le", "gt", "ge"})) return compare(op, a, b);
    if (a.is(IKind::Bool) && b.is(IKind::Bool) && is_one_of(op, {"__and__", "__or__"}))
      return both(a, b, op == "__or__");
    if (op == "floor_divide") return arithmetic("floordiv", a, b);
    if (is_one_of(op, {"add", "sub", "mul", "div", "floordiv", "remainder", "pow", "min", "max", "__and__", "__or__",
                       "__xor__", "__lshift__", "__rshift__"}))
      return arithmetic(op, a, b);
    return std::nullopt;
  }
  if (args.size() == 3 && op == "__derive_index")  // of a range: start + index * step
    return arithmetic("add", args[1], arithmetic("mul", a, args[2]));
  if (args.size() == 3 && op == "__range_length") {
    const Item& step = args[2];
    require(step.is_constant() && step.integer != 0, "a range goes on by steps that only the run tells");
    const bool is_up = step.integer > 0;
    const Item span = is_up ? arithmetic("sub", args[1], a) : arithmetic("sub", a, args[1]);
    const Item each = Item::of_int(is_up ? step.integer : checked_mul(step.integer, -1));
    const Item whole = arithmetic("add", span, Item::of_int(each.integer - 1));
    return arithmetic("max", arithmetic("floordiv", whole, each), Item::of_int(0));
  }
  if (args.size() != 1) return std::nullopt;
  if (op == "__not__") return negated(converted(a, IKind::Bool));
  if (op == "neg") return arithmetic("mul", a, a.is(IKind::Float) ? Item::of_float(-1) : Item::of_int(-1));
  if (is_one_of(op, {"Int", "Float", "Bool", "IntImplicit", "FloatImplicit", "ScalarImplicit"})) {
    return converted(a, op.starts_with("Int") ? IKind::Int
                        : op.starts_with("F") ? IKind::Float
                        : op == "Bool"        ? IKind::Bool
                                              : a.kind);
  }
  if (!a.is_constant()) {
    if (a.is(IKind::Int) && is_one_of(op, {"ceil", "floor", "round"})) return a;
    if (is_one_of(op, {"ceil", "floor"})) return calls_.number(op, {a}, IKind::Int);
    if (op == "sqrt") return calls_.number("_sym_sqrt", {a}, IKind::Float);
    return std::nullopt;
  }
  const double x = real_of(a);
  if (op == "abs") return a.is(IKind::Int) ? Item::of_int(std::abs(a.integer)) : Item::of_float(std::abs(x));
  if (op == "ceil") return Item::of_int(static_cast<int64_t>(std::ceil(x)));
  if (op == "floor") return Item::of_int(static_cast<int64_t>(std::floor(x)));
  if (op == "round") return Item::of_float(std::nearbyint(x));
  if (op == "sqrt") return Item::of_float(std::sqrt(x));
  if (op == "exp") return Item::of_float(std::exp(x));
  if (op == "log") return Item::of_float(std::log(x));
  if (op == "sin") return Item::of_float(std::sin(x));
  if (op == "cos") return Item::of_float(std::cos(x));
  if (op == "tanh") return Item::of_float(std::tanh(x));
  return std::nullopt;
}

std::optional<Item> Interpreter::of_container(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (args.empty() && (op == "dict" || op == "list"))
    return Item::of_items(op == "dict" ? IKind::Dict : IKind::List, {});
  if (args.empty()) return std::nullopt;
  const Item& of = args[0];
  if (of.is(IKind::Text) && args.size() <= 2) {
    if (op == "len") return Item::of_int(static_cast<int64_t>(of.text.size()));
    if (op == "add" && args[1].is(IKind::Text)) return Item::of_text(of.text + args[1].text);
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
  Item::Items& items = *of.items;
  if (of.is(IKind::Dict)) {
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
    const size_t at = place(args[1]);
    if (op == "__contains__") return Item::of_bool(at < items.size());
    if (op == "__getitem__") {
      require(at < items.size(), "a dict has no key '{}'", args[1].text);
      return items[at + 1];
    }
    if (op == "get") return at < items.size() ? items[at + 1] : args.size() > 2 ? args[2] : Item::none();
    if (op == "_set_item" && args.size() == 3) {
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
  if (op == "len") return Item::of_int(static_cast<int64_t>(items.size()));
  if (op == "__getitem__" && args.size() == 2) return items[index_in(items, args[1])];
  if (op == "append") {
    items.push_back(args.at(1));
    return of;
  }
  if (op == "extend" && args.at(1).items) {
    const Item::Items more = *args[1].items;
    items.insert(items.end(), more.begin(), more.end());
    return Item::none();
  }
  if (op == "insert") {
    items.insert(items.begin() + static_cast<ptrdiff_t>(index_in(items, args.at(1), true)), args.at(2));
    return Item::none();
  }
  if (op == "pop" || op == "Delete") {
    const size_t at = index_in(items, args.size() > 1 ? args[1] : Item::of_int(-1));
    const Item taken = items[at];
    items.erase(items.begin() + static_cast<ptrdiff_t>(at));
    return taken;
  }
  if (op == "_set_item") {
    items[index_in(items, args.at(1))] = args.at(2);
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
    list.insert(list.end(), args[1].items->begin(), args[1].items->end());
    if (op == "add_") items = list;
    return op == "add_" ? of : Item::of_items(of.kind, std::move(list));
  }
  if (op == "mul" && args.size() == 2 && args[1].is(IKind::Int) && args[1].is_constant()) {
    Item::Items list;
    constexpr size_t kMostItems = 1 << 20;
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
      require(args[i].is_constant(), "which items of a list are meant depends on the run");
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

std::optional<Item> Interpreter::of_prim(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (op == "RaiseException") {
    if (branches_ == 0)
      fail_invalid("the model raises an exception for such inputs: {}", args.empty() ? std::string() : args[0].text);
    Item raised = Item::of(IKind::Unset);
    raised.text = "raised";
    return raised;
  }
  if (args.empty()) return std::nullopt;
  const Item& of = args[0];
  if (op == "NumToTensor") {
    Item tensor = Item::tensor(nullptr);
    tensor.number = std::make_shared<Item>(of);
    return tensor;
  }
  if (op == "unchecked_unwrap_optional" || op == "data") return of;
  if (is_one_of(op, {"min", "max", "abs"})) return operate("aten", op, arguments);
  if (op == "TupleUnpack" || op == "ListUnpack") return of;
  if (op == "type") return Item::of_text("cpu");  // of a device
  if (!of.is(IKind::Tensor)) return std::nullopt;
  if (op == "dtype") return Item::of_int(number_of(of.value ? of.value->type.dtype : DType::Int64));
  if (op == "device") {
    Item device = Item::of(IKind::Device);
    device.text = "cpu";
    return device;
  }
  if (op == "layout") return Item::of_int(0);
  if (op == "requires_grad") return Item::of_bool(of.value != nullptr && of.value->trainable);
  if (is_one_of(op, {"is_cuda", "is_nested", "is_sparse", "is_quantized", "is_mkldnn", "is_xla", "is_mps", "is_meta",
                     "is_vulkan"}))
    return Item::of_bool(false);
  if (is_one_of(op, {"T", "mT", "H", "mH"})) return operate("aten", op == "T" ? "numpy_T" : op, arguments);
  if (op == "shape") return operate("aten", "size", arguments);
  if (op == "ndim") return operate("aten", "dim", arguments);
  return std::nullopt;
}

/// aten::_convolution, as traces have it, by the name of the layer.
Item Interpreter::convolution(const Arguments& arguments) {
  const auto& args = arguments.positional;
  require(args.size() >= 9 && args[0].is(IKind::Tensor) && args[6].is(IKind::Bool), "a convolution lacks arguments");
  const size_t spatial = args[3].items ? args[3].items->size() : 0;
  require(spatial >= 1 && spatial <= 3, "a convolution has {} strides", spatial);
  const bool is_transposed = args[6].integer != 0;
  std::vector<std::pair<std::string, Item>> named = {{"input", args[0]},  {"weight", args[1]},  {"bias", args[2]},
                                                     {"stride", args[3]}, {"padding", args[4]}, {"dilation", args[5]},
                                                     {"groups", args[8]}};
  if (is_transposed) named.emplace_back("output_padding", args[7]);
  const std::string name = is_transposed
                               ? fmt::format("aten::conv_transpose{}d{}", spatial, spatial == 1 ? "" : ".input")
                               : fmt::format("aten::conv{}d", spatial);
  return calls_.call_row(name, std::move(named));
}

/// torch.tensor of numbers, and lists of them.
Item Interpreter::make_tensor(const Arguments& arguments) {
  const Item& data = arguments.positional.at(0);
  const Item* dtype = find_argument(arguments, 1, "dtype");
  const bool has_type = dtype != nullptr && dtype->is(IKind::Int);
  if (data.is(IKind::Tensor)) return data;
  std::vector<int64_t> dims;
  Item::Items leaves;
  const std::function<void(const Item&, size_t)> collect = [&](const Item& item, size_t depth) {
    if (!item.items) return leaves.push_back(item);
    if (dims.size() <= depth) dims.push_back(static_cast<int64_t>(item.items->size()));
    require(dims[depth] == static_cast<int64_t>(item.items->size()), "the lists of a tensor differ in length");
    for (const Item& each : *item.items) collect(each, depth + 1);
  };
  collect(data, 0);
  const bool has_float = std::any_of(leaves.begin(), leaves.end(), [](const Item& i) { return i.is(IKind::Float); });
  const bool has_int = std::any_of(leaves.begin(), leaves.end(), [](const Item& i) { return i.is(IKind::Int); });
  const DType own = has_float ? DType::Float32 : has_int ? DType::Int64 : leaves.empty() ? DType::Float32 : DType::Bool;
  const DType wanted = has_type ? dtype_of(dtype->integer) : own;
  if (std::all_of(leaves.begin(), leaves.end(), [](const Item& i) { return i.is_number() && i.is_constant(); })) {
    if (leaves.size() == 1 && dims.empty() && wanted == DType::Int64) {
      Item tensor = Item::tensor(calls_.constant(make_scalar(wanted, real_of(leaves[0])), "constant"));
      tensor.number = std::make_shared<Item>(leaves[0]);
      return tensor;
    }
    std::vector<double> numbers;
    for (const Item& leaf : leaves) numbers.push_back(real_of(leaf));
    return Item::tensor(calls_.constant(make_floats(wanted, dims, numbers), "constant"));
  }
  Item::Items scalars;
  for (const Item& leaf : leaves) {
    require(leaf.is_number(), "a tensor is made of {}", name_of(leaf.kind));
    Item scalar = Item::tensor(calls_.as_tensor(leaf));
    if (scalar.value->type.dtype != wanted)
      scalar = calls_.call("aten", "to", {{scalar, Item::of_int(number_of(wanted))}, {}});
    scalars.push_back(scalar);
  }
  if (dims.empty()) return scalars[0];
  const Item row = calls_.call("aten", "stack", {{Item::of_items(IKind::List, scalars)}, {}});
  if (dims.size() == 1) return row;
  Item::Items sizes;
  for (const int64_t dim : dims) sizes.push_back(Item::of_int(dim));
  return calls_.call("aten", "reshape", {{row, Item::of_items(IKind::List, sizes)}, {}});
}

/// What operators of older files meant.
std::optional<Item> Interpreter::of_older(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  const int64_t version = archive_.version();
  if ((op == "div" || op == "div_") && version < 4 && args.size() == 2 && arguments.keywords.empty()) {
    const auto is_whole = [](const Item& item) {
      return item.is(IKind::Tensor) ? item.number || !is_float(item.value->type.dtype) : !item.is(IKind::Float);
    };
    if (!args[0].is(IKind::Tensor) || !is_whole(args[0]) || !is_whole(args[1])) return std::nullopt;
    return calls_.call("aten", op, {args, {{"rounding_mode", Item::of_text("trunc")}}});
  }
  if (op == "full" && version < 5 && args.size() >= 2 && args[1].is_number() && args[1].is_constant()) {
    const Item* dtype = find_argument(arguments, 2, "dtype");
    if (dtype != nullptr && !dtype->is(IKind::None)) return std::nullopt;
    Arguments given = arguments;
    given.positional[1] = Item::of_float(real_of(args[1]));
    return calls_.call("aten", op, given);
  }
  if ((op == "linspace" && version < 8) || (op == "logspace" && version < 9)) {
    if (args.size() < 3 || !args[2].is(IKind::None)) return std::nullopt;
    Arguments given = arguments;
    given.positional[2] = Item::of_int(100);
    return calls_.call("aten", op, given);
  }
  return std::nullopt;
}

std::optional<Item> Interpreter::of_tensor(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (op == "tensor" || op == "as_tensor") return make_tensor(arguments);
  if (op == "_convolution") return convolution(arguments);
  if (op == "device") {
    Item device = Item::of(IKind::Device);
    device.text = "cpu";
    return device;
  }
  if (op == "format") return Item::of_text(formatted(args));
  if (op == "str") return Item::of_text(args.empty() ? "" : text_of(args[0]));
  if (op == "_native_multi_head_attention") return attention(arguments);
  if (op == "_transformer_encoder_layer_fwd") return encoder_layer(arguments);
  if (op == "_weight_norm") return normalised_weight(arguments);
  if (op == "warn" || op == "manual_seed" || op == "_assert") return Item::none();
  // with gradients: fused forms of layers are for running without them
  if (is_one_of(op, {"is_autocast_enabled", "is_grad_enabled", "is_autocast_cpu_enabled", "is_scripting"}))
    return Item::of_bool(op == "is_scripting" || op == "is_grad_enabled");
  if (op == "__is__" || op == "__isnot__") {
    require(args.size() == 2, "{} compares two things", op);
    const Item &a = args[0], &b = args[1];
    const bool same = a.kind == b.kind && (a.is(IKind::Tensor)   ? a.value == b.value && a.number == b.number
                                           : a.is(IKind::Object) ? a.object == b.object
                                           : a.items || b.items  ? a.items == b.items
                                                                 : equal_items(a, b).value_or(false));
    return Item::of_bool(same == (op == "__is__"));
  }
  if (args.empty() || !args[0].is(IKind::Tensor)) return std::nullopt;
  const Item& self = args[0];
  const bool is_dropout = op.find("dropout") != std::string_view::npos && args.size() == 3 && args[2].is(IKind::Bool);
  if (is_dropout && args[2].is_constant() && args[2].integer == 0) return self;
  if (self.number && is_one_of(op, {"add", "sub", "mul", "floor_divide", "div", "remainder", "rsub", "neg"})) {
    // traces compute with sizes as tensors
    Arguments numbers;
    for (const Item& each : args) {
      if (each.is(IKind::Tensor) && !each.number) {
        const Tensor* constant = each.value->producer == nullptr ? each.value->constant.get() : nullptr;
        if (constant == nullptr || constant->count() != 1 || !constant->dims.empty()) break;
        numbers.positional.push_back(is_float(constant->dtype) ? Item::of_float(element_as_double(*constant, 0))
                                                               : Item::of_int(element_as_int(*constant, 0)));
      } else {
        numbers.positional.push_back(each.number ? *each.number : each);
      }
    }
    const Item* rounding = find_argument(arguments, 3, "rounding_mode");
    const bool is_whole = op != "div" || (rounding != nullptr && rounding->is(IKind::Text));
    const bool has_alpha = (op == "add" || op == "sub" || op == "rsub") && numbers.positional.size() > 2;
    if (numbers.positional.size() == args.size() && is_whole &&
        (!has_alpha || (numbers.positional[2].is_constant() && real_of(numbers.positional[2]) == 1))) {
      if (has_alpha) numbers.positional.resize(2);
      std::string_view name = op == "floor_divide" || op == "div" ? "floordiv" : op;
      if (op == "rsub") {
        std::swap(numbers.positional[0], numbers.positional[1]);
        name = "sub";
      }
      if (auto made = of_numbers(name, numbers)) {
        Item tensor = Item::tensor(nullptr);
        tensor.number = std::make_shared<Item>(std::move(*made));
        return tensor;
      }
    }
  }
  if (self.number && is_one_of(op, {"detach", "clone", "contiguous"})) return self;
  if (op == "to" && args.size() >= 2 && args[1].is(IKind::Device)) {  // all is on one device
    const Item* dtype = find_argument(arguments, 2, "dtype");
    if (dtype == nullptr || !dtype->is(IKind::Int)) return self;
    return operate("aten", "to", {{self, *dtype}, {}});
  }
  if (self.number && op == "to" && args.size() > 1 && args[1].is(IKind::Int) && self.number->is(IKind::Int) &&
      dtype_of(args[1].integer) == DType::Int64)
    return self;
  if (is_one_of(op, {"Int", "IntImplicit"})) return converted(self, IKind::Int);
  if (is_one_of(op, {"Float", "FloatImplicit"})) return converted(self, IKind::Float);
  if (op == "Bool") return converted(self, IKind::Bool);
  if (op == "item" || op == "ScalarImplicit") {
    if (self.number) return *self.number;
    const DType dtype = self.value->type.dtype;
    return converted(self, dtype == DType::Bool ? IKind::Bool : is_float(dtype) ? IKind::Float : IKind::Int);
  }
  const Shape& shape = self.number && self.value == nullptr ? Shape() : *self.value->type.shape;
  if (op == "dim" || op == "ndimension") return Item::of_int(static_cast<int64_t>(shape.size()));
  if (op == "len") return calls_.size(self, 0);
  if (op == "size") {
    if (args.size() > 1) return calls_.size(self, args[1].integer);
    Item::Items sizes;
    for (size_t i = 0; i < shape.size(); ++i) sizes.push_back(calls_.size(self, static_cast<int64_t>(i)));
    return Item::of_items(IKind::List, std::move(sizes));
  }
  if (op == "numel") {
    Item count = Item::of_int(1);
    for (size_t i = 0; i < shape.size(); ++i)
      count = arithmetic("mul", count, calls_.size(self, static_cast<int64_t>(i)));
    return count;
  }
  const DType dtype = self.value ? self.value->type.dtype : DType::Int64;
  if (op == "tolist") {
    const IKind kind = dtype == DType::Bool ? IKind::Bool : is_float(dtype) ? IKind::Float : IKind::Int;
    if (shape.empty()) return converted(self, kind);
    const auto count = shape[0].constant();
    if (shape.size() != 1 || !count || *count > kMostListed)
      fail_unsupported("a list of a tensor of shape {}", tonnx::text_of(shape));
    Item::Items list;
    for (int64_t i = 0; i < *count; ++i) {
      if (self.value->constant && self.value->producer == nullptr) {
        const Tensor& tensor = *self.value->constant;
        list.push_back(kind == IKind::Float  ? Item::of_float(element_as_double(tensor, i))
                       : kind == IKind::Bool ? Item::of_bool(element_as_int(tensor, i) != 0)
                                             : Item::of_int(element_as_int(tensor, i)));
      } else {
        list.push_back(converted(calls_.call("aten", "select", {{self, Item::of_int(0), Item::of_int(i)}, {}}), kind));
      }
    }
    return Item::of_items(IKind::List, std::move(list));
  }
  if (op == "is_floating_point") return Item::of_bool(is_float(dtype));
  if (op == "is_complex") return Item::of_bool(is_complex(dtype));
  if (op == "element_size") return Item::of_int(info(dtype).bits / 8);
  if (is_one_of(op, {"cpu", "cuda", "requires_grad_", "pin_memory", "detach", "detach_", "alias", "lift_fresh"}))
    return self;
  if (op == "zero_") return calls_.call("aten", "fill_", {{self, Item::of_int(0)}, {}});
  return std::nullopt;
}

Item Interpreter::operate(std::string_view library, std::string_view op, const Arguments& arguments) {
  if (library == "prim") {
    if (auto made = of_prim(op, arguments)) return *made;
    fail_unsupported("there is no operator prim::{}", op);
  }
  if (library == "aten") {
    if (auto made = of_older(op, arguments)) return *made;
    if (auto made = of_tensor(op, arguments)) return *made;
    if (auto made = of_numbers(op, arguments)) return *made;
    if (auto made = of_container(op, arguments)) return *made;
  }
  if (!arguments.positional.empty() && arguments.positional[0].is(IKind::List) && !arguments.positional[0].items) {
    const Item all = Item::tensor(arguments.positional[0].value);
    const Item* dim = find_argument(arguments, 1, "dim");
    const bool is_first = dim == nullptr || (dim->is(IKind::Int) && dim->integer == 0);
    if (op == "stack" && is_first) return all;
    if (op == "cat" && is_first) return calls_.call("aten", "flatten", {{all, Item::of_int(0), Item::of_int(1)}, {}});
    if (op == "stack") return calls_.call("aten", "movedim", {{all, Item::of_int(0), *dim}, {}});
    if (op == "cat") {
      const Item moved = calls_.call("aten", "movedim", {{all, Item::of_int(0), *dim}, {}});
      require(dim->integer >= 0, "tensors of a loop are joined along dimension {}", dim->integer);
      return calls_.call("aten", "flatten", {{moved, *dim, Item::of_int(dim->integer + 1)}, {}});
    }
  }
  return calls_.call(library, op, arguments);
}

}  // namespace tonnx::torchscript
