// callees.cpp - what an archive's code calls: methods, functions, classes, operators, and functions of Python.
#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "base/identifier.h"
#include "base/limit_error.h"
#include "formats/torchscript/run/interpreter.h"
#include "formats/torchscript/run/item_facts.h"
#include "modules/module_tree.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int kMostCalls = 200;  // of functions inside functions

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
  return call_builtin(expr, frame);
}

/// A function that is forked runs at once, in its place.
Item Interpreter::forked(const Expr& expr, Frame& frame) {
  const auto found = frame.locals.find(expr.items[1]->text);
  require(found != frame.locals.end(), "the code forks what is no function");
  const Restored depth(depth_);
  if (++depth_ > kMostCalls)
    throw LimitError(ErrorKind::Unsupported, error_text("functions are forked more than {} deep", kMostCalls));
  budget().take(Resource::Steps, static_cast<int64_t>(frame.variables.size() + frame.locals.size()));
  Frame inner = frame;
  const std::shared_ptr<Function> function = found->second;
  require(run(function->body, inner) == Flow::Return, "a function that is forked returns nothing");
  return inner.result;
}

/// `annotate` and `unchecked_cast`, of a tensor that is taken as a number too.
Item Interpreter::cast(const Expr& expr, Frame& frame) {
  Item value = eval(*expr.items.back(), frame);
  const Expr& type = *expr.items[1];
  if (!value.is(IKind::Tensor) || expr.items.size() != 3) return value;
  if (type.is_name("int")) return ops_.converted(value, IKind::Int);
  if (type.is_name("float")) return ops_.converted(value, IKind::Float);
  return type.is_name("bool") ? ops_.converted(value, IKind::Bool) : value;
}

Item Interpreter::uninitialized(const Expr&, Frame&) { return Item::of(IKind::Unset); }

Item Interpreter::asked_instance(const Expr& expr, Frame& frame) {
  const Item of = eval(*expr.items[1], frame);
  return of.is(IKind::Refused) ? of : Item::of_bool(is_instance(of, *expr.items[2]));
}

Item Interpreter::attribute(const Expr& expr, Frame& frame) {
  return eval_attribute(eval(*expr.items[1], frame), expr.items[2]->text);
}

Item Interpreter::printed(const Expr& expr, Frame& frame) {
  eval_arguments(expr, frame);
  return Item::none();
}

Item Interpreter::has_attribute(const Expr& expr, Frame& frame) {
  const Arguments arguments = eval_arguments(expr, frame);
  if (ops_.is_refused(arguments)) return Item::refused();
  const Item& of = arguments.positional[0];
  return Item::of_bool(of.is(IKind::Object) && of.object->attributes.contains(arguments.positional[1].text));
}

template <Item::Kind Kind>
Item Interpreter::number_of(const Expr& expr, Frame& frame) {
  const Arguments arguments = eval_arguments(expr, frame);
  return ops_.is_refused(arguments) ? Item::refused() : ops_.converted(arguments.positional[0], Kind);
}

/// A function of Python's own, or an operator: len, min, max ...
Item Interpreter::call_builtin(const Expr& expr, Frame& frame) {
  using Builtin = Item (Interpreter::*)(const Expr&, Frame&);
  static constexpr Named<Builtin> kBuiltins[] = {
      {"annotate", &Interpreter::cast},
      {"bool", &Interpreter::number_of<IKind::Bool>},
      {"float", &Interpreter::number_of<IKind::Float>},
      {"getattr", &Interpreter::attribute},
      {"hasattr", &Interpreter::has_attribute},
      {"int", &Interpreter::number_of<IKind::Int>},
      {"isinstance", &Interpreter::asked_instance},
      {"print", &Interpreter::printed},
      {"unchecked_cast", &Interpreter::cast},
      {"uninitialized", &Interpreter::uninitialized},
  };
  const std::string& name = expr.items[0]->text;
  if (name == "fork" && expr.items.size() == 2 && expr.items[1]->kind == Expr::Kind::Name) return forked(expr, frame);
  require(expr.items.size() > 1 || name == "print" || name == "dict" || name == "list", "'{}' is called with nothing",
          name);
  if (const Builtin builtin = find_named(kBuiltins, name)) return (this->*builtin)(expr, frame);
  const Arguments arguments = eval_arguments(expr, frame);
  return ops_.is_refused(arguments) ? Item::refused() : ops_.operate("aten", name, arguments);
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

namespace {

/// What the annotation of a type says; Unset for one that is not Python's own.
IKind kind_of(std::string_view type) {
  constexpr std::pair<std::string_view, IKind> kKinds[] = {
      {"Dict", IKind::Dict},   {"List", IKind::List}, {"NoneType", IKind::None}, {"Tensor", IKind::Tensor},
      {"Tuple", IKind::Tuple}, {"bool", IKind::Bool}, {"dict", IKind::Dict},     {"float", IKind::Float},
      {"int", IKind::Int},     {"list", IKind::List}, {"str", IKind::Text},      {"tuple", IKind::Tuple},
  };
  const auto* at =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& row) { return row.first == type; });
  return at == std::end(kKinds) ? IKind::Unset : at->second;
}

}  // namespace

bool Interpreter::is_instance(const Item& item, const Expr& type) {
  if (type.kind == Expr::Kind::Tuple || type.kind == Expr::Kind::List) {
    return std::any_of(type.items.begin(), type.items.end(),
                       [&](const ExprPtr& each) { return is_instance(item, *each); });
  }
  if (type.kind == Expr::Kind::Subscript) {
    const std::string& of = type.items[0]->text;
    if (of == "Optional") return item.is(IKind::None) || is_instance(item, *type.items[1]);
    if (!is_one_of(of, {"List", "Tuple", "Dict"})) fail_unsupported("whether something is a {} is not known", of);
    return item.is(kind_of(of));
  }
  const std::string& name = type.text;
  if (!is_one_of(name, {"List", "Tuple", "Dict"})) {
    if (const IKind kind = kind_of(name); kind != IKind::Unset) return item.is(kind);
  }
  Frame empty;
  const auto full = dotted_name(type, empty);
  if (!full) fail_unsupported("whether something is a {} is not known", name);
  return item.object && item.object->type && item.object->type->name == *full;
}

}  // namespace tonnx::torchscript
