// edges.h - the steps between dialects; compilation.cpp has the table of them, and is the only one that calls them.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "convert/pipeline.h"

namespace tonnx {

/// script to exported: nothing writes to a tensor any more; what nobody uses goes away. Loops that a trace wrote out
/// are loops again where that is asked for.
void make_functional(Graph& graph, bool rolls_loops);

/// stored to onnx: inlines functions, brings the model to the newest opset and infers types; but for nodes that are
/// taken over.
void prepare(Model& model, const LoweringOptions& options);

/// exported to onnx.
Model raise_program(const Model& program, const std::vector<std::string>& output_names, const ExportOptions& options);

/// onnx to stored: at the opset that is asked for. `weights`: which constants are weights of the program's, and become
/// inputs where that is asked for.
void store(Model& model, const ExportOptions& options, const std::set<std::string>& weights);

}  // namespace tonnx
