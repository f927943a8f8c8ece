// code_writer.h - an aten graph as the code of a TorchScript archive: one class for the model and those for its
// modules.
#pragma once
#include <string>
#include <vector>

#include "modules/module_tree.h"

namespace tonnx::torchscript {

struct Code {
  std::string source;                  // code/__torch__.py
  std::vector<std::string> classes;    // of the modules, one by one
  std::vector<std::string> arguments;  // of forward
};

/// The class of the model is `Model`.
Code write_code(const Graph& graph, const ModuleTree& tree);

}  // namespace tonnx::torchscript
