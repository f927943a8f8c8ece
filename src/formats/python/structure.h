// structure.h - what the Python module consists of: submodules, parameters, buffers, and their names; found on the aten
// graph.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/python/names.h"
#include "formats/python/python.h"
#include "ops/frame/emission.h"

namespace tonnx::python {

struct Submodule {
  std::string name;  // the attribute of self
  ModuleSpec spec;
};

/// A parameter or buffer of the model itself.
struct RootTensor {
  std::string name;
  const Value* value;
};

struct Structure {
  std::vector<Submodule> modules;
  std::unordered_map<const Node*, size_t> module_of;  // nodes that are calls of a submodule
  std::vector<RootTensor> tensors;
  std::unordered_map<const Value*, std::string> place;  // constants: how the code refers to them
  std::vector<StateTensor> state;
  std::vector<std::string> external_names;
};

Structure recover_structure(const Graph& graph, const PythonOptions& options);

}  // namespace tonnx::python
