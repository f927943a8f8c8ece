// refused.cpp - behind what cannot be read the code is read on, so that all of it is said at once.
#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/run/effects.h"
#include "formats/torchscript/run/interpreter.h"
#include "formats/torchscript/run/merge.h"

namespace tonnx::torchscript {

using IKind = Item::Kind;

bool Interpreter::mentions_refused(const Expr& expr, const Frame& frame) {
  if (expr.kind == Expr::Kind::Name) {
    const auto at = frame.variables.find(expr.text);
    return at != frame.variables.end() && ops_.is_refused(at->second);
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
  if (follows && !ops_.refusals.empty()) return;
  ops_.refusals.add(error.text(), frame.function ? frame.function->file : std::string(), line);
}

Interpreter::Flow Interpreter::refuse(const Error& error, const Stmt& stmt, Frame& frame, size_t mark) {
  const bool follows = ops_.refusals.mark() != mark || error.kind() != ErrorKind::Unsupported ||
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
    const size_t mark = ops_.refusals.mark();
    flows[i] = run(block, inner);
    if (flows[i] == Flow::Raise) ops_.refusals.forget_since(mark);
  }
  forget_assigned(stmt, frame);
  if (stmt.kind != Stmt::Kind::If || flows[0] != flows[1]) return Flow::Next;
  if (flows[0] == Flow::Return) frame.result = Item::refused();
  return flows[0];
}

}  // namespace tonnx::torchscript
