// memory_order.h - as_strided means memory: what it looks at becomes a tensor that lies row by row.
#pragma once
#include "passes/functionalize/tensor_memory.h"

namespace tonnx {

/// Whether the node reads its tensor by the strides of memory.
bool reads_by_strides(const Node& node);
/// Whether the sizes of all inputs are known: where one is open, a reshape may be a view for some sizes and a copy for
/// others, and nobody knows what memory holds.
bool has_fixed_inputs(const Graph& graph);
/// Puts the whole memory of the tensor, in its order, in place of a view or of what does not lie row by row. It is
/// read at once: `is_written`, where the graph writes to tensors, sees to it that nothing is written to it later.
void use_whole_memory(Node& node, TensorMemory& memory, bool is_written);

}  // namespace tonnx
