// to_code_control.h - branches and loops of PyTorch's programs in the form that the writer of Python knows.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// In a program the graphs inside a node have inputs; here they use the values around them: higher_order::cond becomes
/// tonnx::cond, and while_loop tonnx::loop.
void open_graphs(Graph& graph);

}  // namespace tonnx
