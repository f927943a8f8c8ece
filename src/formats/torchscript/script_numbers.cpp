// script_numbers.cpp - numbers of an archive's code: computed where they are known, else nodes.
#include <algorithm>
#include <cmath>

#include "base/checked_int.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/item_facts.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

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

}  // namespace

Item Interpreter::negated(const Item& flag) {
  if (is_refused(flag)) return Item::refused();
  if (flag.is_constant()) return Item::of_bool(flag.integer == 0);
  if (!flag.value->type.is_tensor()) return calls_.number("sym_not", {flag}, IKind::Bool);
  return Item::of_value(IKind::Bool, calls_.call("aten", "logical_not", {{Item::tensor(flag.value)}, {}}).value);
}

Item Interpreter::both(const Item& a, const Item& b, bool is_or) {
  if (is_refused(a) || is_refused(b)) return Item::refused();
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
  Item answer = calls_.number(op, {a, b}, IKind::Bool);
  const bool asks_size = a.is(IKind::Int) && !a.is_constant() && is_size(*a.value) && b.is(IKind::Int) &&
                         b.is_constant() && b.integer == 0;
  if (asks_size && is_one_of(op, {"gt", "ne", "eq"})) answer.unless_empty = op != "eq";
  return answer;
}

Item Interpreter::converted(const Item& of, IKind kind) {
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
    if (!step.is_constant()) fail_unsupported("a range goes on by steps that only the run tells");
    require(step.integer != 0, "a range goes on by steps of 0");
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

}  // namespace tonnx::torchscript
