// interpreter.cpp - statements and expressions of an archive's code.
#include "formats/torchscript/run/interpreter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/budget.h"
#include "base/error.h"
#include "base/identifier.h"
#include "base/limit_error.h"
#include "modules/module_tree.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int kMostCalls = 200;  // of functions inside functions

/// 12 of `CONSTANTS.c12`.
size_t number_behind(const std::string& name, size_t prefix) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + prefix, name.data() + name.size(), number);
  require(error == std::errc() && end == name.data() + name.size(), "there is no constant '{}'", name);
  return number;
}

/// `torch.nn.modules.conv.Conv2d` of `__torch__.torch.nn.modules.conv.___torch_mangle_44.Conv2d`.
std::string plain_class_name(std::string_view name) {
  std::string result;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('.', start), name.size());
    const std::string_view part = name.substr(start, end - start);
    if (part != "__torch__" && !part.starts_with("___torch_mangle_"))
      result += (result.empty() ? "" : ".") + std::string(part);
    start = end + 1;
  }
  return result;
}

/// Gives a variable the value that it had, however the block ends.
template <class T>
class Restored {
 public:
  explicit Restored(T& variable) : variable_(variable), before_(variable) {}
  ~Restored() { variable_ = std::move(before_); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  T& variable_;
  T before_;
};

std::string stack_entry(const Object& module) {
  return fmt::format("L__self__{},{},{}", module.path, module.path, plain_class_name(module.type->name));
}

}  // namespace

Item Interpreter::root() {
  Item root = item_of(archive_.root(), "", false);
  if (root.is(IKind::Refused)) throw Error(ErrorKind::Unsupported, root.text);
  return root;
}

Item Interpreter::call_method(const Item& object, std::string_view name, Arguments arguments) {
  const Class& type = *object.object->type;
  const auto method = type.methods.find(name);
  if (method == type.methods.end()) fail_invalid("the class {} has no method '{}'", type.name, name);
  const Restored stack(ops_.calls.place.stack), path(ops_.calls.place.path);
  if (object.object->is_module) {
    const std::string entry = stack_entry(*object.object);
    std::string& modules = ops_.calls.place.stack;
    if (!modules.ends_with(entry)) modules += (modules.empty() ? "" : ";") + entry;
    ops_.calls.place.path = object.object->path;
    note_class(*object.object);
  }
  return call_function(method->second, std::move(arguments), object);
}

/// Generated code calls its classes as the archive does.
void Interpreter::note_class(const Object& module) {
  if (!noted_.insert(module.path).second) return;
  const std::string full = plain_class_name(module.type->name);
  const std::string name = full.substr(full.rfind('.') + 1);
  if (is_plain_name(name) && !full.starts_with("torch.nn.modules.container"))
    graph_.metadata.emplace_back(class_note(module.path), name);
}

Item Interpreter::call_function(const Function& function, Arguments arguments, std::optional<Item> self) {
  const Restored depth(depth_);
  if (++depth_ > kMostCalls)
    throw LimitError(ErrorKind::Unsupported,
                     error_text("functions call each other more than {} deep: '{}'", kMostCalls, function.name));
  Frame frame;
  frame.function = &function;
  size_t at = 0;
  for (const Parameter& parameter : function.parameters) {
    if (self && &parameter == &function.parameters.front()) {
      frame.variables[parameter.name] = *self;
      continue;
    }
    const auto keyword = std::find_if(arguments.keywords.begin(), arguments.keywords.end(),
                                      [&](const auto& each) { return each.first == parameter.name; });
    if (at < arguments.positional.size()) {
      frame.variables[parameter.name] = std::move(arguments.positional[at++]);
    } else if (keyword != arguments.keywords.end()) {
      frame.variables[parameter.name] = keyword->second;
    } else if (parameter.value) {
      frame.variables[parameter.name] = eval(*parameter.value, frame);
    } else {
      fail_invalid("'{}' is called without its argument '{}'", function.name, parameter.name);
    }
  }
  require(at == arguments.positional.size(), "'{}' is called with too many arguments", function.name);
  const Restored frames(frames_);
  frames_.push_back(&frame);
  if (run(function.body, frame) == Flow::Raise) frame.result = Item::of(IKind::Unset);
  return std::move(frame.result);
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
    case Expr::Kind::Slice: {
      const auto end = [&](const ExprPtr& each) { return each ? eval(*each, frame) : Item::none(); };
      const Item of = eval(*expr.items[0], frame);
      if (of.is(IKind::Tensor))
        return ops_.operate("aten", "slice", {{of, Item::of_int(0), end(expr.items[1]), end(expr.items[2])}, {}});
      return ops_.operate("aten", "slice", {{of, end(expr.items[1]), end(expr.items[2])}, {}});
    }
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
    case Expr::Kind::Choice: {
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
  if (of.is(IKind::Tensor)) {
    if (name == "shape") return ops_.operate("aten", "size", {{of}, {}});
    if (name == "T") return ops_.operate("aten", "numpy_T", {{of}, {}});
    return ops_.operate("prim", name, {{of}, {}});
  }
  fail_unsupported("{} has no attribute '{}'", name_of(of.kind), name);
}

Item Interpreter::eval_subscript(const Item& of, const Item& index) {
  if (of.is(IKind::Tensor)) return ops_.operate("aten", "select", {{of, Item::of_int(0), index}, {}});
  return ops_.operate("aten", "__getitem__", {{of, index}, {}});
}

Arguments Interpreter::eval_arguments(const Expr& call, Frame& frame) {
  Arguments arguments;
  const size_t positional = call.items.size() - 1 - call.keywords.size();
  for (size_t i = 1; i < call.items.size(); ++i) {
    Item value = eval(*call.items[i], frame);
    if (i <= positional) {
      arguments.positional.push_back(std::move(value));
    } else {
      arguments.keywords.emplace_back(call.keywords[i - 1 - positional], std::move(value));
    }
  }
  return arguments;
}

Item Interpreter::eval_call(const Expr& expr, Frame& frame) {
  const size_t mark = ops_.refusals.mark();
  ops_.line = expr.line;
  try {
    return called(expr, frame);
  } catch (const LimitError&) {
    throw;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Unsupported) throw;
    refuse(e, frame, expr.line, ops_.refusals.mark() != mark || mentions_refused(expr, frame));
    return Item::refused();
  }
}

Item Interpreter::called(const Expr& expr, Frame& frame) {
  const Expr& callee = *expr.items[0];
  if (const auto name = dotted_name(callee, frame)) {
    if (name->ends_with(".__new__")) {
      Item made = Item::of(IKind::Object);
      made.object = std::make_shared<Object>();
      made.object->level = ops_.branches;
      made.object->type = archive_.find_class(name->substr(0, name->size() - 8));
      require(made.object->type != nullptr, "there is no class '{}'", *name);
      return made;
    }
    Arguments arguments = eval_arguments(expr, frame);
    if (frame.function) ops_.file = &frame.function->file;  // the arguments may have called functions
    ops_.line = expr.line;
    return call_name(*name, std::move(arguments));
  }
  if (callee.kind == Expr::Kind::Attribute) {
    const Item of = eval(*callee.items[0], frame);
    if (of.is(IKind::Refused)) {
      eval_arguments(expr, frame);
      return Item::refused();
    }
    if (of.is(IKind::Object) && of.object->type && of.object->type->methods.contains(callee.text))
      return call_method(of, callee.text, eval_arguments(expr, frame));
    Arguments arguments = eval_arguments(expr, frame);
    arguments.positional.insert(arguments.positional.begin(), of);
    return ops_.operate("aten", callee.text, arguments);
  }
  require(callee.kind == Expr::Kind::Name, "the code calls what is no function");
  if (const auto local = frame.locals.find(callee.text); local != frame.locals.end()) {
    const std::shared_ptr<Function> function = local->second;
    return call_function(*function, eval_arguments(expr, frame), std::nullopt);
  }
  if (const auto at = frame.variables.find(callee.text); at != frame.variables.end()) {
    const Item callable = at->second;
    if (callable.is(IKind::Refused)) return callable;
    if (callable.is(IKind::Object)) return call_method(callable, "__call__", eval_arguments(expr, frame));
    require(callable.is(IKind::Callable), "'{}' is called, and is {}", callee.text, name_of(callable.kind));
    return call_name(callable.text, eval_arguments(expr, frame));
  }
  const std::string& name = callee.text;
  if (name == "fork" && expr.items.size() == 2 && expr.items[1]->kind == Expr::Kind::Name) {  // at once, in its place
    const auto forked = frame.locals.find(expr.items[1]->text);
    require(forked != frame.locals.end(), "the code forks what is no function");
    const Restored depth(depth_);
    if (++depth_ > kMostCalls)
      throw LimitError(ErrorKind::Unsupported, error_text("functions are forked more than {} deep", kMostCalls));
    budget().take(Resource::Steps, static_cast<int64_t>(frame.variables.size() + frame.locals.size()));
    Frame inner = frame;
    const std::shared_ptr<Function> function = forked->second;
    require(run(function->body, inner) == Flow::Return, "a function that is forked returns nothing");
    return inner.result;
  }
  require(expr.items.size() > 1 || name == "print" || name == "dict" || name == "list", "'{}' is called with nothing",
          name);
  if (name == "annotate" || name == "unchecked_cast") {
    Item value = eval(*expr.items.back(), frame);
    const Expr& type = *expr.items[1];
    if (!value.is(IKind::Tensor) || expr.items.size() != 3) return value;
    // a tensor that is taken as a number
    if (type.is_name("int")) return ops_.converted(value, IKind::Int);
    if (type.is_name("float")) return ops_.converted(value, IKind::Float);
    return type.is_name("bool") ? ops_.converted(value, IKind::Bool) : value;
  }
  if (name == "uninitialized") return Item::of(IKind::Unset);
  if (name == "isinstance") {
    const Item of = eval(*expr.items[1], frame);
    return of.is(IKind::Refused) ? of : Item::of_bool(is_instance(of, *expr.items[2]));
  }
  if (name == "getattr") return eval_attribute(eval(*expr.items[1], frame), expr.items[2]->text);
  const Arguments arguments = eval_arguments(expr, frame);
  if (name == "print") return Item::none();
  if (ops_.is_refused(arguments)) return Item::refused();
  if (name == "int") return ops_.converted(arguments.positional[0], IKind::Int);
  if (name == "float") return ops_.converted(arguments.positional[0], IKind::Float);
  if (name == "bool") return ops_.converted(arguments.positional[0], IKind::Bool);
  if (name == "str") return ops_.operate("aten", "str", arguments);
  if (name == "hasattr") {
    const Item& of = arguments.positional[0];
    return Item::of_bool(of.is(IKind::Object) && of.object->attributes.contains(arguments.positional[1].text));
  }
  return ops_.operate("aten", name, arguments);  // len, min, max ...
}

Item Interpreter::call_name(std::string_view name, Arguments arguments) {
  if (name.starts_with("torch.")) return ops_.operate("aten", name.substr(6), arguments);
  if (name.starts_with("ops.")) {
    const size_t dot = name.find('.', 4);
    require(dot != std::string_view::npos, "'{}' is no operator", name);
    return ops_.operate(name.substr(4, dot - 4), name.substr(dot + 1), arguments);
  }
  if (const Function* function = archive_.find_function(name))
    return call_function(*function, std::move(arguments), std::nullopt);
  const Class* type = archive_.find_class(name);
  require(type != nullptr, "there is no function '{}'", name);
  if (type->base == "NamedTuple") {
    Item made = Item::of_items(IKind::Tuple, std::move(arguments.positional));
    made.object = std::make_shared<Object>();
    made.object->type = type;
    return made;
  }
  Item made = Item::of(IKind::Object);
  made.object = std::make_shared<Object>();
  made.object->level = ops_.branches;
  made.object->type = type;
  call_method(made, "__init__", std::move(arguments));
  return made;
}

bool Interpreter::is_instance(const Item& item, const Expr& type) {
  if (type.kind == Expr::Kind::Tuple || type.kind == Expr::Kind::List) {
    return std::any_of(type.items.begin(), type.items.end(),
                       [&](const ExprPtr& each) { return is_instance(item, *each); });
  }
  if (type.kind == Expr::Kind::Subscript) {
    const std::string& of = type.items[0]->text;
    if (of == "List") return item.is(IKind::List);
    if (of == "Tuple") return item.is(IKind::Tuple);
    if (of == "Dict") return item.is(IKind::Dict);
    if (of == "Optional") return item.is(IKind::None) || is_instance(item, *type.items[1]);
    fail_unsupported("whether something is a {} is not known", of);
  }
  const std::string& name = type.text;
  if (name == "Tensor") return item.is(IKind::Tensor);
  if (name == "int") return item.is(IKind::Int);
  if (name == "float") return item.is(IKind::Float);
  if (name == "bool") return item.is(IKind::Bool);
  if (name == "str") return item.is(IKind::Text);
  if (name == "NoneType") return item.is(IKind::None);
  if (name == "list") return item.is(IKind::List);
  if (name == "tuple") return item.is(IKind::Tuple);
  if (name == "dict") return item.is(IKind::Dict);
  Frame empty;
  const auto full = dotted_name(type, empty);
  if (!full) fail_unsupported("whether something is a {} is not known", name);
  return item.object && item.object->type && item.object->type->name == *full;
}

}  // namespace tonnx::torchscript
