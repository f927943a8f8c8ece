// readying.h - what happens to the nodes of a graph before, or while, its writes become values.
#pragma once
#include "passes/functionalize/tensor_memory.h"

namespace tonnx {

// autocast.cpp: what torch.autocast does to the operators inside it, written down as conversions
/// Matrix products, convolutions and the like get their inputs in `dtype`; what PyTorch computes in float32 gets them
/// in float32. Which of them did is known from the types of their results.
void write_autocast(Graph& graph, DType dtype);

// hidden_views.cpp
/// Makes a node that only looks at its one tensor, such as an einsum of it that sums nothing, the view that it is.
void show_view(Node& node);

// memory_order.cpp: as_strided means memory
/// Whether the node reads its tensor by the strides of memory.
bool reads_by_strides(const Node& node);
/// Whether the sizes of all inputs are known: where one is open, a reshape may be a view for some sizes and a copy for
/// others, and nobody knows what memory holds.
bool has_fixed_inputs(const Graph& graph);
/// Puts the whole memory of the tensor, in its order, in place of a view or of what does not lie row by row. It is
/// read at once: `is_written`, where the graph writes to tensors, sees to it that nothing is written to it later.
void use_whole_memory(Node& node, TensorMemory& memory, bool is_written);

}  // namespace tonnx
