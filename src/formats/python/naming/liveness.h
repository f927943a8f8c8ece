// liveness.h - up to where in a block each value is needed.
#pragma once
#include <functional>
#include <unordered_map>

#include "formats/python/statements/nesting.h"

namespace tonnx::python {

/// The last use of each value that a block names. Positions are those of the nodes; the end of the block is behind all.
class Liveness {
 public:
  Liveness(const Positions& positions, const Nesting& nesting) : positions_(positions), nesting_(nesting) {}

  /// To be called once it is known what is nested.
  void find_last_uses(const Graph& graph);

  int position_of(const Node& node) const { return positions_.at(&node); }
  bool is_used(const Value* value) const { return last_use_.contains(value); }
  /// The position of the last statement that uses the value; -1 where there is none.
  int last_use(const Value* value) const;
  /// The values that the text of a node, with what is nested into it, has as variables.
  void visit_variables(const Node& node, const std::function<void(const Value*)>& use) const;

 private:
  const Positions& positions_;
  const Nesting& nesting_;
  std::unordered_map<const Value*, int> last_use_;
};

}  // namespace tonnx::python
