// conv.h - what convolutions of floats and of quantised integers share.
#pragma once
#include <optional>
#include <string_view>

#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

class Emission;
struct ModuleSpec;

/// What the node calls its input and its weight.
struct ConvNames {
  std::string_view x = "X", w = "W";
};

/// A weight, a kernel_shape and the input each tell how many dimensions the others have.
void learn_conv_ranks(InferNode& n, const ConvNames& names = {});
/// The shape of the result; nothing where it is not known. Throws where the inputs contradict one another.
std::optional<Shape> conv_shape(const NodeView& n, const ConvNames& names = {});
/// The convolution that the node describes, of these values.
Value* convolved(const OnnxNode& n, AtenBuilder& aten, Value* x, Value* weight, Value* bias,
                 const ConvNames& names = {});

/// nn.Conv2d or its like, where the weights are constants.
std::optional<ModuleSpec> module_conv(const Emission& e);

/// What a transposed convolution cuts off the front of each spatial dimension; nothing where that is not known.
std::optional<std::vector<int64_t>> find_transposed_pads(const NodeView& n);

}  // namespace tonnx
