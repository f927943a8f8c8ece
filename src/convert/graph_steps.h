// graph_steps.h - what steps between dialects do to a whole graph.
#pragma once
#include "ir/model.h"

namespace tonnx {

/// exported: what many nodes make of numbers alone, such as the mask of an attention, becomes a constant. A line or two
/// that say it stay, as they are easier to read than numbers in a file.
void fold_program(Graph& graph);

/// Nodes whose notes say which module they belong to are named after it: `encoder.layer.0/MatMul`. What the classes of
/// the modules are is noted with the graph (`class_note`).
void name_by_scopes(Model& model);

}  // namespace tonnx
