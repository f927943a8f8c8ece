// torchscript.h - aten graphs as TorchScript archives, which torch.jit.load and libtorch read.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// A parameter or a buffer: an initializer of the graph, as an attribute of a module.
struct ScriptTensor {
  std::string name;
  const Value* value;
  bool transposed = false;  // the type of the value has its two dimensions swapped already, its bytes have not
  bool trainable = false;
};

/// A module inside the model, with what belongs to it.
struct ScriptModule {
  std::string name;
  std::string type;  // nn.Conv2d
  std::vector<ScriptTensor> tensors;
};

struct ScriptParts {
  std::vector<ScriptTensor> tensors;  // of the model itself
  std::vector<ScriptModule> modules;
  std::unordered_map<const Node*, size_t> module_of;  // nodes that are calls of a module
  std::vector<std::string> output_names;
};

/// The graph is functional. Branches and loops are `tonnx::cond` and `tonnx::loop`. Throws BadFile, Unsupported.
/// `progress` is told how many bytes of weights are written, and how many there are.
void write_torchscript(const Graph& graph, const ScriptParts& parts, const std::string& path,
                       const std::function<void(uint64_t, uint64_t)>& progress = nullptr);

}  // namespace tonnx
