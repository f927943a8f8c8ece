// fold_program.h - constants that a program computes.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// exported: what many nodes make of numbers alone, such as the mask of an attention, becomes a constant. A line or two
/// that say it stay, as they are easier to read than numbers in a file.
void fold_program(Graph& graph);

}  // namespace tonnx
