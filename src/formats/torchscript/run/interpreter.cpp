// interpreter.cpp - statements and expressions of an archive's code.
#include "formats/torchscript/run/interpreter.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/budget.h"
#include "base/error.h"
#include "base/limit_error.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

/// 12 of `CONSTANTS.c12`.
size_t number_behind(const std::string& name, size_t prefix) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + prefix, name.data() + name.size(), number);
  require(error == std::errc() && end == name.data() + name.size(), "there is no constant '{}'", name);
  return number;
}

}  // namespace

Item Interpreter::root() {
  Item root = item_of(archive_.root(), "", false);
  if (root.is(IKind::Refused)) throw Error(ErrorKind::Unsupported, root.text);
  return root;
}

Interpreter::Flow Interpreter::run(const Block& block, Frame& frame) {
  for (const Stmt& stmt : block) {
    const Flow flow = run(stmt, frame);
    if (flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

Interpreter::Flow Interpreter::run(const Stmt& stmt, Frame& frame) {
  budget().take(Resource::Steps, 1);
  const size_t mark = ops_.refusals.mark();
  ops_.file = &frame.function->file;
  ops_.line = stmt.line;
  try {
    switch (stmt.kind) {
      case Stmt::Kind::Assign: assign(stmt, frame); return Flow::Next;
      case Stmt::Kind::Expression: {
        const Item value = eval(*stmt.value, frame);
        return value.is(IKind::Unset) && value.text == "raised" ? Flow::Raise : Flow::Next;
      }
      case Stmt::Kind::Return: frame.result = stmt.value ? eval(*stmt.value, frame) : Item::none(); return Flow::Return;
      case Stmt::Kind::If: return run_if(stmt, frame);
      case Stmt::Kind::For: return run_for(stmt, frame);
      case Stmt::Kind::While: return run_while(stmt, frame);
      case Stmt::Kind::With: return run(stmt.body, frame);
      case Stmt::Kind::Def: frame.locals[stmt.function->name] = stmt.function; return Flow::Next;
      case Stmt::Kind::Raise:
        if (ops_.branches == 0) fail_invalid("the model raises an exception for such inputs");
        return Flow::Raise;
      case Stmt::Kind::Pass:
      case Stmt::Kind::Assert:
      case Stmt::Kind::Delete: return Flow::Next;
    }
  } catch (Error& e) {
    const bool is_last = dynamic_cast<const LimitError*>(&e) != nullptr;
    if (!is_last &&
        (e.kind() == ErrorKind::Unsupported || (e.kind() == ErrorKind::InvalidModel && !ops_.refusals.empty())))
      return refuse(e, stmt, frame, mark);
    if (!is_located_) e.add_frame(error_text("reading {}, line {}", frame.function->file, stmt.line));
    is_located_ = true;
    throw;
  }
  return Flow::Next;
}

void Interpreter::assign(const Expr& target, Item value, Frame& frame) {
  if (target.kind == Expr::Kind::Name) {
    frame.variables[target.text] = std::move(value);
  } else if (target.kind == Expr::Kind::Attribute) {
    const Item object = eval(*target.items[0], frame);
    if (object.is(IKind::Refused)) return;
    require(object.is(IKind::Object), "an attribute is set of what is no object");
    if (object.object->level < ops_.branches)
      fail_unsupported("'{}' of an object is set in a branch or a loop that only the run decides", target.text);
    object.object->attributes[target.text] = std::move(value);
  } else if (target.kind == Expr::Kind::Subscript) {
    const Item of = eval(*target.items[0], frame);
    ops_.operate("aten", "_set_item", {{of, eval(*target.items[1], frame), std::move(value)}, {}});
  } else {
    fail_unsupported("the code assigns to what is no variable");
  }
}

void Interpreter::assign(const Stmt& stmt, Frame& frame) {
  Item value = eval(*stmt.value, frame);
  if (!stmt.sign.empty()) {
    const Item before = eval(*stmt.targets[0], frame);
    const char* const op = stmt.sign == "+" ? "add" : stmt.sign == "-" ? "sub" : stmt.sign == "*" ? "mul" : "div";
    return assign(*stmt.targets[0], ops_.operate("aten", op, {{before, value}, {}}), frame);
  }
  if (!stmt.unpacks) return assign(*stmt.targets[0], std::move(value), frame);
  if (value.is(IKind::Unset) || value.is(IKind::Refused)) {
    for (const ExprPtr& target : stmt.targets) assign(*target, value, frame);
    return;
  }
  const bool has_items = (value.is(IKind::Tuple) || value.is(IKind::List)) && value.items;
  require(has_items, "what is unpacked is {}", name_of(value.kind));
  require(value.items->size() == stmt.targets.size(), "{} values are unpacked to {} variables", value.items->size(),
          stmt.targets.size());
  const Item::Items items = *value.items;
  for (size_t i = 0; i < items.size(); ++i) assign(*stmt.targets[i], items[i], frame);
}

std::optional<std::string> Interpreter::dotted_name(const Expr& expr, const Frame& frame) const {
  if (expr.kind == Expr::Kind::Name) {
    const bool is_root =
        expr.text == "torch" || expr.text == "ops" || expr.text == "__torch__" || expr.text == "CONSTANTS";
    return is_root && !frame.variables.contains(expr.text) ? std::optional(expr.text) : std::nullopt;
  }
  if (expr.kind != Expr::Kind::Attribute) return std::nullopt;
  auto of = dotted_name(*expr.items[0], frame);
  if (of) *of += "." + expr.text;
  return of;
}

Item Interpreter::eval_name(const Expr& expr, Frame& frame) {
  if (const auto at = frame.variables.find(expr.text); at != frame.variables.end()) return at->second;
  const std::string& name = expr.text;
  if (name == "None") return Item::none();
  if (name == "True" || name == "False") return Item::of_bool(name == "True");
  if (name == "inf") return Item::of_float(std::numeric_limits<double>::infinity());
  if (name == "nan") return Item::of_float(std::numeric_limits<double>::quiet_NaN());
  fail_invalid("the variable '{}' is used before it has a value", name);
}

Item Interpreter::eval_slice(const Expr& expr, Frame& frame) {
  const auto end = [&](const ExprPtr& each) { return each ? eval(*each, frame) : Item::none(); };
  const Item of = eval(*expr.items[0], frame);
  if (of.is(IKind::Tensor))
    return ops_.operate("aten", "slice", {{of, Item::of_int(0), end(expr.items[1]), end(expr.items[2])}, {}});
  return ops_.operate("aten", "slice", {{of, end(expr.items[1]), end(expr.items[2])}, {}});
}

/// `a if condition else b`
Item Interpreter::eval_choice(const Expr& expr, Frame& frame) {
  Item condition = eval(*expr.items[1], frame);
  if (condition.is(IKind::Tensor)) condition = ops_.converted(condition, IKind::Bool);
  if (ops_.is_refused(condition)) {
    eval(*expr.items[0], frame);
    eval(*expr.items[2], frame);
    return Item::refused();
  }
  if (condition.is_constant()) return eval(*expr.items[condition.integer != 0 ? 0 : 2], frame);
  const auto way = [&](size_t item) {
    return [this, &expr, item](Frame& inner) {
      inner.result = eval(*expr.items[item], inner);
      return Flow::Return;
    };
  };
  run_branch(condition, way(0), way(2), frame);
  return std::exchange(frame.result, Item::none());
}

Item Interpreter::eval(const Expr& expr, Frame& frame) {
  budget().take(Resource::Steps, 1);
  const auto all = [&](IKind kind) {
    Item::Items items;
    for (const ExprPtr& each : expr.items) items.push_back(eval(*each, frame));
    return Item::of_items(kind, std::move(items));
  };
  switch (expr.kind) {
    case Expr::Kind::Name: return eval_name(expr, frame);
    case Expr::Kind::Int: return Item::of_int(expr.integer);
    case Expr::Kind::Float: return Item::of_float(expr.real);
    case Expr::Kind::Text: return Item::of_text(expr.text);
    case Expr::Kind::Tuple: return all(IKind::Tuple);
    case Expr::Kind::List: return all(IKind::List);
    case Expr::Kind::Dict: return all(IKind::Dict);
    case Expr::Kind::Subscript: return eval_subscript(eval(*expr.items[0], frame), eval(*expr.items[1], frame));
    case Expr::Kind::Slice: return eval_slice(expr, frame);
    case Expr::Kind::Attribute: {
      if (const auto name = dotted_name(expr, frame)) {
        if (name->starts_with("CONSTANTS.c")) return constant(number_behind(*name, 11));
        if (auto member = enum_member(*name)) return *member;
        Item callable = Item::of(IKind::Callable);
        callable.text = *name;
        return callable;
      }
      return eval_attribute(eval(*expr.items[0], frame), expr.text);
    }
    case Expr::Kind::Call: return eval_call(expr, frame);
    case Expr::Kind::Unary: {
      const Item of = eval(*expr.items[0], frame);
      if (expr.text == "not") return ops_.negated(of);
      return ops_.operate("aten", expr.text == "-" ? "neg" : "bitwise_not", {{of}, {}});
    }
    case Expr::Kind::Binary: return eval_binary(expr, frame);
    case Expr::Kind::Choice: return eval_choice(expr, frame);
  }
  return Item::none();
}

/// A member of an Enum is its value.
std::optional<Item> Interpreter::enum_member(const std::string& name) {
  const size_t dot = name.rfind('.');
  const Class* type = dot == std::string::npos ? nullptr : archive_.find_class(std::string_view(name).substr(0, dot));
  if (type == nullptr || type->base != "Enum") return std::nullopt;
  const auto value = type->constants.find(std::string_view(name).substr(dot + 1));
  require(value != type->constants.end(), "there is no '{}'", name);
  Frame empty;
  return eval(*value->second, empty);
}

Item Interpreter::eval_binary(const Expr& expr, Frame& frame) {
  const Item a = eval(*expr.items[0], frame), b = eval(*expr.items[1], frame);
  if (expr.text == "and") return ops_.both(a, b, false);
  if (expr.text == "or") return ops_.both(a, b, true);
  if (expr.text == "in") return ops_.operate("aten", "__contains__", {{b, a}, {}});
  if (expr.text == "not in") return ops_.negated(ops_.operate("aten", "__contains__", {{b, a}, {}}));
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"+", "add"},         {"-", "sub"},       {"*", "mul"},     {"/", "div"},
      {"//", "floordiv"},   {"%", "remainder"}, {"**", "pow"},    {"@", "matmul"},
      {"==", "eq"},         {"!=", "ne"},       {"<", "lt"},      {"<=", "le"},
      {">", "gt"},          {">=", "ge"},       {"is", "__is__"}, {"is not", "__isnot__"},
      {"&", "__and__"},     {"|", "__or__"},    {"^", "__xor__"}, {"<<", "__lshift__"},
      {">>", "__rshift__"},
  };
  for (const auto& [sign, name] : kNames) {
    if (expr.text == sign) return ops_.operate("aten", name, {{a, b}, {}});
  }
  fail_unsupported("the operator {} is not supported", expr.text);
}

Item Interpreter::eval_attribute(const Item& of, std::string_view name) {
  if (ops_.is_refused(of)) return Item::refused();
  if (of.is(IKind::Object)) {
    const auto at = of.object->attributes.find(name);
    if (at != of.object->attributes.end()) {
      if (at->second.is(IKind::Refused) && ops_.is_refused(at->second)) return Item::refused();
      return at->second;
    }
    if (of.object->type != nullptr) {
      const auto constant = of.object->type->constants.find(name);
      if (constant != of.object->type->constants.end()) {
        Frame empty;
        return eval(*constant->second, empty);
      }
      fail_invalid("an object of the class {} has no attribute '{}'", of.object->type->name, name);
    }
  }
  if (of.is(IKind::Tuple) && of.object && of.object->type) {
    const auto& fields = of.object->type->fields;
    for (size_t i = 0; i < fields.size() && i < of.items->size(); ++i) {
      if (fields[i].first == name) return (*of.items)[i];
    }
  }
  if (of.is(IKind::Tensor)) return ops_.operate("prim", name, {{of}, {}});
  fail_unsupported("{} has no attribute '{}'", name_of(of.kind), name);
}

Item Interpreter::eval_subscript(const Item& of, const Item& index) {
  if (of.is(IKind::Tensor)) return ops_.operate("aten", "select", {{of, Item::of_int(0), index}, {}});
  return ops_.operate("aten", "__getitem__", {{of, index}, {}});
}

}  // namespace tonnx::torchscript
