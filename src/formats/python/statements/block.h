// block.h - the statements of one graph: forward itself, a branch, or the body of a loop.
#pragma once
#include <string>
#include <vector>

#include "formats/python/naming/liveness.h"
#include "formats/python/naming/variables.h"
#include "formats/python/statements/expressions.h"
#include "formats/python/statements/nesting.h"
#include "formats/python/statements/statements.h"
#include "modules/loops.h"

namespace tonnx::python {

class BlockWriter {
 public:
  /// The block of forward, whose parameters have their names.
  BlockWriter(const Graph& graph, const Scope& scope, Forward& result);
  /// A block inside another: in it, `owner` is the node that has the graph.
  BlockWriter(const Graph& graph, BlockWriter& outer, const Node& owner);
  BlockWriter(const BlockWriter&) = delete;

  const Graph& graph() const { return graph_; }
  const Scope& scope() const { return scope_; }
  const Nesting& nesting() const { return nesting_; }
  const Liveness& liveness() const { return liveness_; }
  Expressions& expressions() { return expressions_; }
  Variables& variables() { return variables_; }
  std::string text_of(const Value* value, int place = 0) const { return expressions_.text_of(value, place); }

  void write_statements();
  void write_return(const std::vector<std::string>& texts);
  std::vector<std::string> output_texts() const;
  /// How many outputs, from this one on, are all that a loop has put into a list, in its order; 0 where they are not.
  size_t whole_list_at(size_t at) const;
  /// `x, y = ...` at the end of a block: the first outputs, one for each name; those with an empty name are left out.
  void write_assignment(const std::vector<std::string>& names);

  void add(std::string text, int deeper = 0);
  /// A blank line behind a statement of this block.
  void add_gap();
  size_t statement_count() const { return result_.statements.size(); }
  /// The statements from the one of this number on; they may be changed.
  std::vector<Statement>& statements() { return result_.statements; }
  int level() const { return level_; }

 private:
  void write_statement(const Node& node);
  void write_projections(const Projections& projections, const Node& first);
  /// A loop over the members of a list.
  void write_each(const Node& node);
  struct Walk {
    std::string head, call;              // `for layer, key in zip(self.layers, keys):`, `layer`
    std::vector<std::string> arguments;  // what each call has of its own
  };
  Walk walk_of(const Node& node, const LoopOfCalls& loop, const std::string& members, ChosenNames& others);
  std::string whole_list(const std::vector<const Value*>& values) const;

  const Graph& graph_;
  const Scope& scope_;
  Forward& result_;
  int level_;
  Positions positions_;
  Nesting nesting_;
  Liveness liveness_;
  Variables variables_;
  Expressions expressions_;
};

/// Writes tonnx::cond or tonnx::loop, a node of that block, with the blocks inside it.
void write_control_flow(BlockWriter& block, const Node& node);

}  // namespace tonnx::python
