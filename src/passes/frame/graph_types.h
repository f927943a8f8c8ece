// graph_types.h - types of the values of an aten graph, by what the rows of its operators say.
#pragma once
#include <string_view>

#include "ir/graph.h"

namespace tonnx {

/// Gives every value of the graph, and of those inside it, a type: an element type, and a shape where it can be known.
/// Integers get their expression over sizes. What is known already stays, but for sizes that follow from others. Each
/// walk over one graph has a tag of its own.
void infer_aten_types(Graph& graph, std::string_view tag);

/// An expression over sizes that only the run tells gets a name of its own where one of these sizes is nowhere seen by
/// itself: PyTorch refuses such expressions.
void name_unseen_sizes(Graph& graph);

}  // namespace tonnx
