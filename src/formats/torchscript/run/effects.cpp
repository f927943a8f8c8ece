// effects.cpp - looks for assignments in code, and for writes in graphs.
#include "formats/torchscript/run/effects.h"

#include <algorithm>

#include "ops/frame/aten_names.h"
#include "ops/frame/op_def.h"

namespace tonnx::torchscript {
namespace {

class NameWalk {
 public:
  void statements(const Block& block) {
    for (const Stmt& stmt : block) statement(stmt);
  }
  void statement(const Stmt& stmt) {
    for (const ExprPtr& target : stmt.targets) {
      if (target->kind != Expr::Kind::Name) {
        expression(*target);
      } else if (std::find(names.assigned.begin(), names.assigned.end(), target->text) == names.assigned.end()) {
        names.assigned.push_back(target->text);
      }
    }
    if (stmt.value) expression(*stmt.value);
    statements(stmt.body);
    statements(stmt.otherwise);
  }
  void expression(const Expr& expr) {
    const bool is_append = expr.kind == Expr::Kind::Call && expr.items.size() == 3 &&
                           expr.items[0]->kind == Expr::Kind::Attribute && expr.items[0]->text == "append" &&
                           expr.items[0]->items[0]->is_name("torch") && expr.items[1]->kind == Expr::Kind::Name;
    if (is_append) {
      names.appended.insert(expr.items[1]->text);
      return expression(*expr.items[2]);
    }
    if (expr.kind == Expr::Kind::Name) names.read.insert(expr.text);
    for (const ExprPtr& item : expr.items) {
      if (item) expression(*item);
    }
  }

  LoopNames names;
};

bool is_inside(const Graph* graph, const Graph& outer) {
  for (; graph != nullptr; graph = graph->owner ? graph->owner->graph : nullptr) {
    if (graph == &outer) return true;
  }
  return false;
}

}  // namespace

Value* root_of(Value* value) {
  while (value->producer != nullptr) {
    const Node& node = *value->producer;
    const AtenOpEntry* entry = find_canonical_op(node);
    const bool is_view = (entry != nullptr && entry->op->view != ViewRule::None) || writes_self(node);
    if (!is_view || node.inputs().empty() || node.input(0) == nullptr) return value;
    value = node.input(0);
  }
  return value;
}

LoopNames loop_names(const Stmt& loop) {
  NameWalk walk;
  walk.statements(loop.body);
  if (loop.kind == Stmt::Kind::While && loop.value) walk.expression(*loop.value);
  return std::move(walk.names);
}

LoopNames statement_names(const Stmt& stmt) {
  NameWalk walk;
  walk.statement(stmt);
  return std::move(walk.names);
}

void find_written(const Graph& graph, const Graph& inner, std::set<Value*>& into) {
  for (const Node& node : inner) {
    if (node.domain == "aten" && writes_self(node) && node.input(0) != nullptr) {
      Value* root = root_of(node.input(0));
      if (!is_inside(root->graph, graph)) into.insert(root);
    }
    for (const GraphPtr& each : subgraphs_of(node)) find_written(graph, *each, into);
  }
}

}  // namespace tonnx::torchscript
