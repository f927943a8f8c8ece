// to_program.h - an aten graph that was made for Python code as a program of torch.export.
#pragma once
#include <string>

#include "convert/pipeline.h"

namespace tonnx {

/// Writes NAME.pt2. The graph is changed on the way.
void write_pt2_file(Graph& graph, const Model& origin, const std::string& path, const ConvertOptions& options);

}  // namespace tonnx
