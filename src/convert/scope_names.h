// scope_names.h - the modules that exporters of PyTorch say each node comes from.
#pragma once
#include "ir/model.h"

namespace tonnx {

/// Nodes whose notes say which module they belong to are named after it: `encoder.layer.0/MatMul`. What the classes of
/// the modules are is noted with the graph (`class_note`).
void name_by_scopes(Model& model);

}  // namespace tonnx
