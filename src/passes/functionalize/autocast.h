// autocast.h - what torch.autocast does to the operators inside it, written down as conversions.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Matrix products, convolutions and the like get their inputs in `dtype`; what PyTorch computes in float32 gets them
/// in float32. Which of them did is known from the types of their results.
void write_autocast(Graph& graph, DType dtype);

}  // namespace tonnx
