// projected_raise.h - a layer of an LSTM whose states are projected.
#pragma once
#include <vector>

#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

/// Of one direction, as PyTorch has them. The biases may be null.
struct ProjectedWeights {
  Value *input, *state, *bias_input, *bias_state, *projection;
};

/// What the LSTM of ONNX would give: [time, directions, batch, size], and the last states.
Values projected_layer(OnnxBuilder& onnx, Value* x, const std::vector<ProjectedWeights>& directions, Value* h, Value* c,
                       Value* lengths);

}  // namespace tonnx
