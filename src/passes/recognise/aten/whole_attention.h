// whole_attention.h - nn.MultiheadAttention in the graph of generated code.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// aten: attention of a tensor to itself, between the two projections that the names of their weights call those of an
/// nn.MultiheadAttention, becomes one node, a module of generated code.
void recognise_whole_attention(Graph& graph);

}  // namespace tonnx
