// repeats.h - parts of a graph that are alike, where names say nothing of the modules that they were.
#pragma once
#include "modules/module_tree.h"

namespace tonnx {

/// Gives the layers of parts that repeat paths of their own: `stage1.0.conv1`. What is in a module already, or is
/// called as a module of PyTorch's was, stays where it is.
void find_repeats(const Graph& graph, ModuleTree& tree);

}  // namespace tonnx
