// stack_classes.h - the classes that the modules of a program had in PyTorch.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Notes with the graph which class each module is of (`class_note`), as the nn_module_stack of its nodes says.
void note_stack_classes(Graph& graph);

}  // namespace tonnx
