// statements.h - the body of forward: which nodes are statements of their own, and what variables they set.
#pragma once
#include <string>
#include <vector>

#include "modules/module_tree.h"

namespace tonnx::python {

/// One line, to be laid out; an empty one is a blank line.
struct Statement {
  int level;  // of indentation within forward
  std::string text;
};

struct Forward {
  std::vector<std::string> parameters;
  std::vector<Statement> statements;
};

/// A method beside forward.
struct MethodText {
  std::string name;
  Forward code;
};

/// `state_name`: a tensor of the model's state, beside which new ones are made where no input is a tensor; empty where
/// it has none. The arguments of the model keep their names; those of a part of it are variables like others.
Forward write_forward(const Graph& graph, const ModuleTree& tree, const std::string& state_name, bool is_model);

}  // namespace tonnx::python
