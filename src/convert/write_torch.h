// write_torch.h - an aten graph that was made for Python code as a program of torch.export, or of TorchScript.
#pragma once
#include <string>
#include <vector>

#include "convert/pipeline.h"

namespace tonnx {

/// Writes NAME.pt2. The graph is changed on the way.
void write_pt2_file(Graph& graph, const Model& origin, const std::string& path, const ConvertOptions& options);

/// Writes NAME.pt, which torch.jit.load reads. The graph is changed on the way.
void write_torchscript_file(Graph& graph, const std::vector<std::string>& output_names, const std::string& path,
                            const ConvertOptions& options);

}  // namespace tonnx
