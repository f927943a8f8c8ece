// to_code_steps.h - the steps from what only programs of torch.export have to the form that a person would write.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Copies, views and conversions that change no value go away, views become reshapes, and numbers lose the names that
/// tracing gave them; integers are not trained. The graph is functional: who shares whose memory does not matter.
void drop_copies(Graph& graph);

/// In a program the graphs inside a node have inputs; here they use the values around them: higher_order::cond becomes
/// tonnx::cond, and while_loop tonnx::loop.
void open_graphs(Graph& graph);

/// `x * self.lifted_tensor_0` becomes `x * 2.5`, and `self.lifted_tensor_0.expand(2, 3)` becomes `torch.full`, where
/// the result is of the same type.
void make_literals(Graph& graph);

}  // namespace tonnx
