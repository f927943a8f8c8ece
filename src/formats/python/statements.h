// statements.h - the body of forward: which nodes are statements of their own, and what variables they set.
#pragma once
#include <string>
#include <vector>

#include "formats/python/structure.h"

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

Forward write_forward(const Graph& graph, const Structure& structure);

}  // namespace tonnx::python
