// nesting.h - which nodes are written inside the expression that uses them, and are no statements of their own.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace tonnx::python {

class Expressions;

/// Where each node of a graph stands in it.
using Positions = std::unordered_map<const Node*, int>;
Positions positions_of(const Graph& graph);

/// What three layers make of one tensor in the same way, as attention takes it: one statement has all of it.
struct Projections {
  std::vector<const Node*> nodes;   // of query, key and value, or of the last two
  std::vector<const Node*> layers;  // whose results they move about
};

/// The nodes of a block that are written inside others.
class Nesting {
 public:
  bool contains(const Node* node) const { return nested_.contains(node); }
  /// Whether the text of a value is that of the node that makes it, and not the name of a variable.
  bool is_inside(const Value* value) const { return value->producer && nested_.contains(value->producer); }
  /// The text of a node for which all is chosen, and how tightly it binds; null while it is not, and afterwards.
  const std::pair<std::string, int>* find_text(const Node* node) const;
  /// Those that begin with the node, which is the first of them in the block.
  const Projections* find_projections(const Node* node) const;
  /// Whether a statement before has the node.
  bool is_done_before(const Node* node) const { return done_before_.contains(node); }

  /// Chooses them. `expressions` measures the text, and looks at this object for what is nested so far;
  /// `level` is that of the block, 0 for forward itself.
  void choose(const Graph& graph, const Positions& positions, const Expressions& expressions, int level);

 private:
  bool can_nest(const Node& node, const Node& user, const Positions& positions) const;
  void find_projections_of(const Node& attention, const Positions& positions, const Expressions& expressions);
  void hide_weights(const Graph& graph, const Expressions& expressions);
  void choose_inputs(const Node& node, const Positions& positions, const Expressions& expressions);
  void drop_repeated(const Node& node, std::vector<const Node*>& candidates, const Expressions& expressions);
  void choose_outputs(const Graph& graph, const Expressions& expressions, bool is_forward);

  size_t width_ = 0;                                                    // what a statement may have
  std::unordered_map<const Node*, std::pair<std::string, int>> texts_;  // while names are not given yet
  std::unordered_set<const Node*> nested_;
  std::unordered_set<const Node*> hidden_;  // nested, and no text has them
  std::unordered_map<const Node*, Projections> projections_;
  std::unordered_set<const Node*> apart_;        // the nodes of all projections
  std::unordered_set<const Node*> done_before_;  // but for the first of each
};

/// A plain number or a list of them.
bool is_number(const Value& value);

}  // namespace tonnx::python
