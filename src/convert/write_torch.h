// write_torch.h - code as a program of torch.export, or of TorchScript.
#pragma once
#include <string>
#include <vector>

#include "convert/pipeline.h"
#include "modules/module_tree.h"

namespace tonnx {

/// code to exported: nodes say which modules they are in. Gives the weights, under the names that generated code has.
std::vector<StateEntry> state_for_program(Graph& graph);

/// Writes NAME.pt, which torch.jit.load reads. The graph is changed on the way.
void write_torchscript_file(Graph& graph, const std::vector<std::string>& output_names, const std::string& path,
                            const ConvertOptions& options);

}  // namespace tonnx
