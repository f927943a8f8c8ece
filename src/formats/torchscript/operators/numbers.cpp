// numbers.cpp - numbers of an archive's code: computed where they are known, else nodes.
#include <algorithm>
#include <cmath>

#include "base/checked_int.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/operators/operators.h"
#include "formats/torchscript/run/item_facts.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

/// Python's division and remainder: the quotient is rounded down.
int64_t floor_of(int64_t a, int64_t b) {
  require(b != 0 && !(a == INT64_MIN && b == -1), "the code divides {} by {}", a, b);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t difference_of(int64_t a, int64_t b) { return checked_add(a, checked_mul(b, -1)); }

void require_shift(std::string_view op, int64_t by, int64_t most) {
  if (by < 0 || by > most) fail_unsupported("{} of numbers is not supported", op);
}

int64_t shifted_left(int64_t a, int64_t b) {
  require_shift("__lshift__", b, 62);
  return checked_mul(a, int64_t{1} << b);
}

int64_t shifted_right(int64_t a, int64_t b) {
  require_shift("__rshift__", b, 63);
  return a >> b;
}

constexpr Named<int64_t (*)(int64_t, int64_t)> kFoldsOfInts[] = {
    {"__and__", [](int64_t a, int64_t b) { return a & b; }},
    {"__lshift__", shifted_left},
    {"__or__", [](int64_t a, int64_t b) { return a | b; }},
    {"__rshift__", shifted_right},
    {"__xor__", [](int64_t a, int64_t b) { return a ^ b; }},
    {"add", [](int64_t a, int64_t b) { return checked_add(a, b); }},
    {"floordiv", floor_of},
    {"max", [](int64_t a, int64_t b) { return std::max(a, b); }},
    {"min", [](int64_t a, int64_t b) { return std::min(a, b); }},
    {"mul", [](int64_t a, int64_t b) { return checked_mul(a, b); }},
    {"remainder", [](int64_t a, int64_t b) { return difference_of(a, checked_mul(floor_of(a, b), b)); }},
    {"sub", difference_of},
};

constexpr Named<double (*)(double, double)> kFoldsOfFloats[] = {
    {"add", [](double a, double b) { return a + b; }},
    {"div", [](double a, double b) { return a / b; }},
    {"floordiv", [](double a, double b) { return std::floor(a / b); }},
    {"max", [](double a, double b) { return std::max(a, b); }},
    {"min", [](double a, double b) { return std::min(a, b); }},
    {"mul", [](double a, double b) { return a * b; }},
    {"pow", [](double a, double b) { return std::pow(a, b); }},
    {"remainder", [](double a, double b) { return a - std::floor(a / b) * b; }},
    {"sub", [](double a, double b) { return a - b; }},
};

Item folded(std::string_view op, const Item& a, const Item& b, bool is_float) {
  if (is_float) {
    if (const auto fold = find_named(kFoldsOfFloats, op)) return Item::of_float(fold(real_of(a), real_of(b)));
  } else if (const auto fold = find_named(kFoldsOfInts, op)) {
    return Item::of_int(fold(a.integer, b.integer));
  }
  fail_unsupported("{} of numbers is not supported", op);
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

}  // namespace

Item Operators::negated(const Item& flag) {
  if (is_refused(flag)) return Item::refused();
  if (flag.is_constant()) return Item::of_bool(flag.integer == 0);
  if (!flag.value->type.is_tensor()) return calls.number("sym_not", {flag}, IKind::Bool);
  return Item::of_value(IKind::Bool, calls.call("aten", "logical_not", {{Item::tensor(flag.value)}, {}}).value);
}

Item Operators::both(const Item& a, const Item& b, bool is_or) {
  if (is_refused(a) || is_refused(b)) return Item::refused();
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (one->is_constant()) return (one->integer != 0) == is_or ? Item::of_bool(is_or) : *other;
  }
  if (!a.value->type.is_tensor() && !b.value->type.is_tensor())
    return calls.number(is_or ? "or_" : "and_", {a, b}, IKind::Bool);
  const Arguments flags{{Item::tensor(calls.as_tensor(a)), Item::tensor(calls.as_tensor(b))}, {}};
  return Item::of_value(IKind::Bool, calls.call("aten", is_or ? "logical_or" : "logical_and", flags).value);
}

Item Operators::arithmetic(std::string_view op, const Item& a, const Item& b) {
  const bool is_float = a.is(IKind::Float) || b.is(IKind::Float) || op == "div" || op == "pow";
  if (a.is_constant() && b.is_constant()) return folded(op, a, b, is_float);
  const IKind kind = is_float ? IKind::Float : IKind::Int;
  const auto is_tensor = [](const Item& item) { return !item.is_constant() && item.value->type.is_tensor(); };
  if (is_tensor(a) || is_tensor(b)) {
    const std::string_view name = op == "floordiv" ? "floor_divide"
                                  : op == "min"    ? "minimum"
                                  : op == "max"    ? "maximum"
                                                   : op;
    const bool by_number = is_tensor(a) && b.is_constant() && op != "min" && op != "max";
    const Item other = by_number ? b : Item::tensor(calls.as_tensor(b));
    return Item::of_value(kind, calls.call("aten", name, {{Item::tensor(calls.as_tensor(a)), other}, {}}).value);
  }
  const std::string_view name = op == "remainder" ? "mod"
                                : op == "div"     ? "truediv"
                                : op == "min"     ? "sym_min"
                                : op == "max"     ? "sym_max"
                                                  : op;
  return calls.number(name, {a, b}, kind);
}

namespace {

/// A size of a tensor, or a short sum or product of some.
bool is_size(const Value& number, int depth = 0) {
  constexpr int kDeepest = 8;
  const Node* const node = number.producer;
  if (node == nullptr || depth > kDeepest) return false;
  if (node->op == Symbol("sym_size")) return true;
  const auto& inputs = node->inputs();
  return (node->op == Symbol("add") || node->op == Symbol("mul")) && node->domain == Symbol("_operator") &&
         std::all_of(inputs.begin(), inputs.end(), [&](const Value* each) { return is_size(*each, depth + 1); });
}

}  // namespace

Item Operators::compare(std::string_view op, const Item& a, const Item& b) {
  if (a.is_constant() && b.is_constant()) return Item::of_bool(folded_order(op, real_of(a), real_of(b)));
  const auto is_tensor = [](const Item& item) { return !item.is_constant() && item.value->type.is_tensor(); };
  if (is_tensor(a) || is_tensor(b)) {
    const Item other = is_tensor(a) && b.is_constant() ? b : Item::tensor(calls.as_tensor(b));
    return Item::of_value(IKind::Bool, calls.call("aten", op, {{Item::tensor(calls.as_tensor(a)), other}, {}}).value);
  }
  if (a.is(IKind::Int) && b.is(IKind::Int)) {
    if (const auto known = order_of(op, ScriptCalls::dim_of(a), ScriptCalls::dim_of(b))) return Item::of_bool(*known);
  }
  Item answer = calls.number(op, {a, b}, IKind::Bool);
  const bool asks_size = a.is(IKind::Int) && !a.is_constant() && is_size(*a.value) && b.is(IKind::Int) &&
                         b.is_constant() && b.integer == 0;
  if (asks_size && is_one_of(op, {"gt", "ne", "eq"})) answer.unless_empty = op != "eq";
  return answer;
}

Item Operators::converted(const Item& of, IKind kind) {
  if (is_refused(of)) return Item::refused();
  if (of.is(IKind::Tensor)) {
    if (of.number) return converted(*of.number, kind);
    const Type& type = of.value->type;
    if (is_known_tensor(of) && of.value->constant->count() == 1) {
      const double value = element_as_double(*of.value->constant, 0);
      if (kind == IKind::Float) return Item::of_float(value);
      if (kind == IKind::Bool) return Item::of_bool(value != 0);
      return Item::of_int(element_as_int(*of.value->constant, 0));
    }
    Item scalar = of;
    if (type.shape->size() > 0) scalar = calls.call("aten", "reshape", {{of, Item::of_items(IKind::List, {})}, {}});
    const DType wanted = kind == IKind::Int ? DType::Int64 : kind == IKind::Bool ? DType::Bool : type.dtype;
    if (type.dtype != wanted && !(kind == IKind::Float && is_float(type.dtype))) {
      const DType target = kind == IKind::Float ? DType::Float32 : wanted;
      scalar = calls.call("aten", "to", {{scalar, Item::of_int(number_of(target))}, {}});
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
  return calls.number(kind == IKind::Int ? "sym_int" : "sym_float", {of}, kind);
}

namespace {

std::optional<Item> compared(Operators& ops, const OpCall& call) {
  return ops.compare(call.op, call.args[0], call.args[1]);
}

std::optional<Item> computed(Operators& ops, const OpCall& call) {
  return ops.arithmetic(call.op, call.args[0], call.args[1]);
}

std::optional<Item> floor_divided(Operators& ops, const OpCall& call) {
  return ops.arithmetic("floordiv", call.args[0], call.args[1]);
}

std::optional<Item> of_flags_or_bits(Operators& ops, const OpCall& call) {
  const Item &a = call.args[0], &b = call.args[1];
  if (a.is(IKind::Bool) && b.is(IKind::Bool)) return ops.both(a, b, call.op == "__or__");
  return ops.arithmetic(call.op, a, b);
}

constexpr OpRow kOfTwoNumbers[] = {
    {"__and__", of_flags_or_bits},
    {"__lshift__", computed},
    {"__or__", of_flags_or_bits},
    {"__rshift__", computed},
    {"__xor__", computed},
    {"add", computed},
    {"div", computed},
    {"eq", compared},
    {"floor_divide", floor_divided},
    {"floordiv", computed},
    {"ge", compared},
    {"gt", compared},
    {"le", compared},
    {"lt", compared},
    {"max", computed},
    {"min", computed},
    {"mul", computed},
    {"ne", compared},
    {"pow", computed},
    {"remainder", computed},
    {"sub", computed},
};

/// Of a range: start + index * step.
std::optional<Item> index_in_range(Operators& ops, const OpCall& call) {
  return ops.arithmetic("add", call.args[1], ops.arithmetic("mul", call.args[0], call.args[2]));
}

std::optional<Item> range_length(Operators& ops, const OpCall& call) {
  const Item &first = call.args[0], &end = call.args[1], &step = call.args[2];
  if (!step.is_constant()) fail_unsupported("a range goes on by steps that only the run tells");
  require(step.integer != 0, "a range goes on by steps of 0");
  const bool is_up = step.integer > 0;
  const Item span = is_up ? ops.arithmetic("sub", end, first) : ops.arithmetic("sub", first, end);
  const Item each = Item::of_int(is_up ? step.integer : checked_mul(step.integer, -1));
  const Item whole = ops.arithmetic("add", span, Item::of_int(each.integer - 1));
  return ops.arithmetic("max", ops.arithmetic("floordiv", whole, each), Item::of_int(0));
}

constexpr OpRow kOfThreeNumbers[] = {
    {"__derive_index", index_in_range},
    {"__range_length", range_length},
};

std::optional<Item> not_of(Operators& ops, const OpCall& call) {
  return ops.negated(ops.converted(call.args[0], IKind::Bool));
}

std::optional<Item> minus(Operators& ops, const OpCall& call) {
  const Item& a = call.args[0];
  return ops.arithmetic("mul", a, a.is(IKind::Float) ? Item::of_float(-1) : Item::of_int(-1));
}

template <IKind Kind>
std::optional<Item> number_as(Operators& ops, const OpCall& call) {
  return ops.converted(call.args[0], Kind);
}

std::optional<Item> number_itself(Operators& ops, const OpCall& call) {
  return ops.converted(call.args[0], call.args[0].kind);
}

/// Of a number that is known; nothing of others.
template <double (*F)(double)>
std::optional<Item> of_known(Operators&, const OpCall& call) {
  const Item& a = call.args[0];
  return a.is_constant() ? std::optional(Item::of_float(F(real_of(a)))) : std::nullopt;
}

/// The integer that is next to it on one side.
template <double (*F)(double)>
std::optional<Item> whole(Operators& ops, const OpCall& call) {
  const Item& a = call.args[0];
  if (a.is_constant()) return Item::of_int(static_cast<int64_t>(F(real_of(a))));
  return a.is(IKind::Int) ? a : ops.calls.number(call.op, {a}, IKind::Int);
}

std::optional<Item> rounded(Operators& ops, const OpCall& call) {
  const Item& a = call.args[0];
  if (!a.is_constant() && a.is(IKind::Int)) return a;
  return of_known<std::nearbyint>(ops, call);
}

std::optional<Item> root(Operators& ops, const OpCall& call) {
  const Item& a = call.args[0];
  if (!a.is_constant()) return ops.calls.number("_sym_sqrt", {a}, IKind::Float);
  return Item::of_float(std::sqrt(real_of(a)));
}

std::optional<Item> magnitude(Operators&, const OpCall& call) {
  const Item& a = call.args[0];
  if (!a.is_constant()) return std::nullopt;
  return a.is(IKind::Int) ? Item::of_int(std::abs(a.integer)) : Item::of_float(std::abs(real_of(a)));
}

constexpr OpRow kOfOneNumber[] = {
    {"Bool", number_as<IKind::Bool>},
    {"Float", number_as<IKind::Float>},
    {"FloatImplicit", number_as<IKind::Float>},
    {"Int", number_as<IKind::Int>},
    {"IntImplicit", number_as<IKind::Int>},
    {"ScalarImplicit", number_itself},
    {"__not__", not_of},
    {"abs", magnitude},
    {"ceil", whole<std::ceil>},
    {"cos", of_known<std::cos>},
    {"exp", of_known<std::exp>},
    {"floor", whole<std::floor>},
    {"log", of_known<std::log>},
    {"neg", minus},
    {"round", rounded},
    {"sin", of_known<std::sin>},
    {"sqrt", root},
    {"tanh", of_known<std::tanh>},
};

constexpr OpTable kNumberTables[] = {kOfOneNumber, kOfTwoNumbers, kOfThreeNumbers};  // by the number of arguments

}  // namespace

bool is_of_numbers(std::string_view op) {
  return std::any_of(std::begin(kNumberTables), std::end(kNumberTables),
                     [&](OpTable table) { return find_named(table, op) != nullptr; });
}

std::optional<Item> of_numbers(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  const bool are_numbers = std::all_of(args.begin(), args.end(), [](const Item& item) { return item.is_number(); });
  if (args.empty() || args.size() > std::size(kNumberTables) || !are_numbers) return std::nullopt;
  return from_table(kNumberTables[args.size() - 1], ops, call);
}

}  // namespace tonnx::torchscript
