// torchscript.h - aten graphs as TorchScript archives, which torch.jit.load and libtorch read.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "formats/modules/module_tree.h"

namespace tonnx {

/// The graph is functional. Branches and loops are `tonnx::cond` and `tonnx::loop`. Of entries that are transposed the
/// type of the value has its two dimensions swapped already, its bytes have not; generators are left out of the tree.
/// Throws BadFile, Unsupported. `progress` is told how many bytes of weights are written, and how many there are.
void write_torchscript(const Graph& graph, const ModuleTree& tree, const std::vector<std::string>& output_names,
                       const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress = nullptr);

}  // namespace tonnx
