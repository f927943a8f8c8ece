// scaled_layer.h - a layer whose results are scaled and shifted by constants is a layer with other weights.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// What is done to each output channel of a layer: y = factor * x + offset.
struct PerChannel {
  std::vector<double> factor;  // empty: 1
  std::vector<double> offset;  // empty: 0
  Value* near = nullptr;       // the constant whose place a new bias may take, where there are offsets
};

/// What a BatchNormalization by constants does; nothing where the node is no such thing.
std::optional<PerChannel> find_normalisation(const Node& node);

/// How many output channels a layer with constant weights has that nobody else uses; nothing for other nodes. For Conv,
/// ConvTranspose, Gemm and MatMul.
std::optional<int64_t> output_channels(const Node& layer);

/// Changes weights and bias of the layer. False, and nothing has changed, where they would leave the range in which
/// numbers of their type are exact, or the layer has no place for them.
bool absorb(Node& layer, const PerChannel& change);

}  // namespace tonnx
