// ties.h - weights that several modules of a model share.
#pragma once
#include "modules/module_tree.h"

namespace tonnx {

/// Gives each module its own name again where several have one weight: an embedding that encoder and decoder call as
/// theirs, and the layer at the end that is the embedding turned around. The names of nodes tell the modules apart.
void tie_modules(const Graph& graph, ModuleTree& tree);

}  // namespace tonnx
