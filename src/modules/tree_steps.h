// tree_steps.h - what completes a tree of modules: those that weights tie, and parts that repeat.
#pragma once
#include "modules/module_tree.h"

namespace tonnx {

/// Gives each module its own name again where several have one weight: an embedding that encoder and decoder call as
/// theirs, and the layer at the end that is the embedding turned around. The names of nodes tell the modules apart.
void tie_modules(const Graph& graph, ModuleTree& tree);

/// Gives the layers of parts that repeat paths of their own: `stage1.0.conv1`. What is in a module already, or is
/// called as a module of PyTorch's was, stays where it is.
void find_repeats(const Graph& graph, ModuleTree& tree);

}  // namespace tonnx
