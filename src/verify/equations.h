// equations.h - open sizes of inputs that the rest of a model determines: by its weights, and by each other.
#pragma once
#include "ir/model.h"
#include "verify/sizes.h"

namespace tonnx::judge {

/// What the nodes of an inferred graph ask of sizes: those that have to be equal first, then those that may be 1.
std::vector<SizeEquation> equations_in(const Graph& graph);

/// The open sizes that follow: by name, those of batches where nothing else says more.
SizesByName solved(const std::vector<SizeEquation>& equations, const std::map<std::string, SizePlace>& names,
                   const SizesByName& fixed);

}  // namespace tonnx::judge
