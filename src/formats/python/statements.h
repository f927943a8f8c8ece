// statements.h - the body of forward: which nodes are statements of their own, and what variables they set.
#pragma once
#include <string>
#include <vector>

#include "formats/python/structure.h"

namespace tonnx::python {

struct Forward {
  std::vector<std::string> parameters;
  std::vector<std::string> statements;  // each one line, to be laid out
};

Forward write_forward(const Graph& graph, const Structure& structure);

}  // namespace tonnx::python
