// script_refused.cpp - behind what cannot be read the code is read on, so that all of it is said at once.
#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/script_effects.h"
#include "formats/torchscript/script_merge.h"

namespace tonnx::torchscript {

using IKind = Item::Kind;

bool Interpreter::is_refused(const Item& item) {
  if (item.is(IKind::Refused)) {
    if (!item.text.empty() && file_ != nullptr) refusals_.add(item.text, *file_, line_);
    return true;
  }
  if (refusals_.empty() || !item.items) return false;
  budget().take(Resource::Steps, static_cast<int64_t>(item.items->size()));
  return std::any_of(item.items->begin(), item.items->end(), [&](const Item& each) { return is_refused(each); });
}

bool Interpreter::is_refused(const Arguments& arguments) {
  bool found = false;
  for (const Item& item : arguments.positional) found = is_refused(item) || found;
  for (const auto& [name, item] : arguments.keywords) found = is_refused(item) || found;
  return found;
}

bool Interpreter::mentions_refused(const Expr& expr, const Frame& frame) {
  if (expr.kind == Expr::Kind::Name) {
    const auto at = frame.variables.find(expr.text);
    return at != frame.variables.end() && is_refused(at->second);
  }
  return std::any_of(expr.items.begin(), expr.items.end(),
                     [&](const ExprPtr& item) { return item && mentions_refused(*item, frame); });
}

bool Interpreter::mentions_refused(const Block& block, const Frame& frame) {
  return std::any_of(block.begin(), block.end(), [&](const Stmt& stmt) {
    return (stmt.value && mentions_refused(*stmt.value, frame)) || mentions_refused(stmt.body, frame) ||
           mentions_refused(stmt.otherwise, frame);
  });
}

void Interpreter::refuse(const Error& error, const Frame& frame, uint32_t line, bool follows) {
  if (follows && !refusals_.empty()) return;
  refusals_.add(error.text(), frame.function ? frame.function->file : std::string(), line);
}

Interpreter::Flow Interpreter::refuse(const Error& error, const Stmt& stmt, Frame& frame, size_t mark) {
  const bool follows = refusals_.mark() != mark || error.kind() != ErrorKind::Unsupported ||
                       (stmt.value && mentions_refused(*stmt.value, frame)) || mentions_refused(stmt.body, frame) ||
                       mentions_refused(stmt.otherwise, frame);
  refuse(error, frame, stmt.line, follows);
  forget_assigned(stmt, frame);
  if (stmt.kind == Stmt::Kind::Raise) return Flow::Raise;
  if (stmt.kind != Stmt::Kind::Return) return Flow::Next;
  frame.result = Item::refused();
  return Flow::Return;
}

/// What the statement gives values to, or puts something into, is not known behind it.
void Interpreter::forget_assigned(const Stmt& stmt, Frame& frame) {
  const LoopNames names = statement_names(stmt);
  for (const std::string& name : names.assigned) frame.variables[name] = Item::refused();
  for (const std::string& name : names.appended) frame.variables[name] = Item::refused();
  for (const std::string& name : names.read) {
    const auto at = frame.variables.find(name);
    if (at != frame.variables.end() && (at->second.is(IKind::List) || at->second.is(IKind::Dict)))
      at->second = Item::refused();
  }
}

Interpreter::Flow Interpreter::run_refused(const Stmt& stmt, Frame& frame) {
  Flow flows[2] = {Flow::Next, Flow::Next};
  for (size_t i = 0; i < 2; ++i) {
    const Block& block = i == 0 ? stmt.body : stmt.otherwise;
    Frame inner;
    inner.function = frame.function;
    inner.locals = frame.locals;
    inner.variables = Copier().copy(frame.variables);
    if (stmt.kind == Stmt::Kind::For) assign(*stmt.targets[0], Item::refused(), inner);
    const size_t mark = refusals_.mark();
    flows[i] = run(block, inner);
    if (flows[i] == Flow::Raise) refusals_.forget_since(mark);
  }
  forget_assigned(stmt, frame);
  if (stmt.kind != Stmt::Kind::If || flows[0] != flows[1]) return Flow::Next;
  if (flows[0] == Flow::Return) frame.result = Item::refused();
  return flows[0];
}

}  // namespace tonnx::torchscript
