// sample_inputs.h - the inputs that a .pt2 archive carries as an example, which AOTInductor asks for.
#pragma once
#include <string>

#include "formats/pt2/size_writer.h"
#include "ir/graph.h"

namespace tonnx::pt2 {

/// Writes what torch.save makes of `((x, ...), {})`, with zeros of the inputs' types and shapes; empty where they would
/// be too large.
std::string sample_inputs(const Graph& graph, const SampleSizes& sizes);

}  // namespace tonnx::pt2
