// python.h - an aten graph as a Python file: an nn.Module as a person would write it.
#pragma once
#include <string>
#include <vector>

#include "formats/state_tensor.h"
#include "ir/model.h"

namespace tonnx {

/// How a module that a converter of the user's own made is written down.
struct ExternalModule {
  std::string import_line;         // `from my_package.layers import MyLayer`; empty in memory
  std::string constructor;         // `MyLayer(alpha=0.5)`
  std::vector<StateTensor> state;  // names within the module
};

struct PythonOptions {
  std::string weights_file;              // as `load` looks for it; only its ending counts beside the file
  std::string title;                     // the file's name without its ending
  std::vector<ExternalModule> external;  // one for each node that was taken over
  bool flat = false;                     // one class, all modules and tensors of which are its own attributes
};

struct PythonModule {
  std::string source;
  std::vector<StateTensor> state;
  std::vector<std::pair<std::string, size_t>>
      tied;  // further names in the state dict, and which of `state` they are of
};

/// `origin` is the model that the graph comes from: it is only described.
PythonModule write_python(const Graph& graph, const Model& origin, const PythonOptions& options);

/// For code that is run where it is written: its weights are given to it, and so are the modules of converters of the
/// user's own, which have these weights, as the list EXTERNAL.
PythonOptions memory_options(const std::string& title, std::vector<std::vector<StateTensor>> external = {});
/// Code that was written with memory_options as it stands in a file, with these weights beside it.
std::string source_for_file(std::string source, const PythonOptions& options, const std::vector<StateTensor>& state);

}  // namespace tonnx
