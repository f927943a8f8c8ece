// torchscript.h - TorchScript archives: read as programs of aten, and written for torch.jit.load and libtorch.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/modules/module_tree.h"
#include "formats/pt2/pt2.h"

namespace tonnx {

/// What an archive does not say of its inputs; by their names, or their places where no input has that name.
struct ScriptInputs {
  std::map<std::string, std::vector<int64_t>> shapes;  // -1: open
  std::map<std::string, DType> types;                  // float32 where nothing is said
};

/// The program that forward() is for such inputs. Branches and loops that only the run decides are `tonnx::cond` and
/// `tonnx::loop`; operators that write are still there. Throws BadFile, InvalidModel, Unsupported.
Program read_torchscript(const std::string& path, const ScriptInputs& inputs);

/// The graph is functional. Branches and loops are `tonnx::cond` and `tonnx::loop`. Of entries that are transposed the
/// type of the value has its two dimensions swapped already, its bytes have not; generators are left out of the tree.
/// Throws BadFile, Unsupported. `progress` is told how many bytes of weights are written, and how many there are.
void write_torchscript(const Graph& graph, const ModuleTree& tree, const std::vector<std::string>& output_names,
                       const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress = nullptr);

}  // namespace tonnx
