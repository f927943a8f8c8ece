// to_exported.h - aten: what only generated code can say (lists of integers, sequences, loops) as PyTorch's own
// operators.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Leaves a graph that torch.export could have made: operators of PyTorch, integers, and the graphs of
/// torch.ops.higher_order. Every value has a type. Throws Unsupported where a node has no such form.
void to_exported(Graph& graph);

// The steps of it.

/// Loops that run a known number of times become that many copies, and branches that are decided go away.
/// `budget`: how many nodes may still be made. Says whether anything changed.
bool unroll_loops(Graph& graph, int64_t& budget);
/// Sequences whose elements are known become these elements; those among the outputs stay as `tonnx::list`.
void resolve_lists(Graph& graph);
/// Lists of integers, tensors of sizes and the like.
void rewrite_numbers(Graph& graph);
/// What PyTorch has as functions and modules only: the part of the above that TorchScript needs as well.
void rewrite_functions(Graph& graph);
/// Branches and loops become cond and while_loop, whose graphs get all that they use as inputs.
void make_higher_order(Graph& graph);

/// Integers that are known numbers are written as such where they are used.
void fold_numbers(Graph& graph);

}  // namespace tonnx
