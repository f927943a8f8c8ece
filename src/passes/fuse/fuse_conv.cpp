// fuse_conv.cpp - what scales and shifts the channels of a layer with constant weights becomes a part of these.
#include <algorithm>

#include "base/computed.h"
#include "passes/frame/op_symbols.h"
#include "passes/fuse/scaled_layer.h"
#include "passes/pass_table.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// The node before the only other user of its result, where it could be a layer.
Node* layer_before(const Node& node, const Value* x) {
  if (x == nullptr || x->uses.size() != 1 || x->graph != node.graph) return nullptr;
  return x->producer;
}

/// The layer's results are now those of the node behind it.
void take_place(Node& layer, Node& node) {
  Graph& graph = *node.graph;
  node.resize_inputs(0);
  graph.move_output(node.output(0), &layer, 0);
  graph.erase(&node);
}

/// The sizes of a constant operand as it meets a tensor of that rank; nothing where it would make the rank larger.
/// Before opset 7 attributes say where it lies.
std::optional<std::vector<int64_t>> aligned_dims(const Node& node, const Tensor& constant, int64_t rank) {
  std::vector<int64_t> dims = constant.dims;
  auto before = rank - static_cast<int64_t>(dims.size());
  if (before < 0) return std::nullopt;
  if (node.version < 7) {
    if (int_of(node, "broadcast").value_or(0) == 0) return std::nullopt;
    if (const auto axis = int_of(node, "axis")) {
      const auto first = from_front(*axis, rank);
      if (!first || *first > before) return std::nullopt;
      dims.resize(dims.size() + static_cast<size_t>(before - *first), 1);
      before = *first;
    }
  }
  dims.insert(dims.begin(), static_cast<size_t>(before), 1);
  return dims;
}

/// The rank of what a layer gives, and the axis of its channels.
struct Channels {
  int64_t rank, axis, count;
};
std::optional<Channels> find_channels(const Node& layer) {
  const auto count = output_channels(layer);
  if (!count) return std::nullopt;
  if (is_onnx(layer, kGemm)) return Channels{2, 1, *count};
  if (!is_onnx(layer, kMatMul)) return Channels{static_cast<int64_t>(layer.input(1)->constant->dims.size()), 1, *count};
  const auto rank = layer.output(0)->type.rank();
  return rank && *rank > 0 ? std::optional(Channels{*rank, *rank - 1, *count}) : std::nullopt;
}

/// One number for each channel; nothing where the constant is not the same for all elements of a channel.
std::optional<std::vector<double>> numbers_by_channel(const Node& node, const Value* constant,
                                                      const Channels& channels) {
  if (constant == nullptr || !constant->constant || constant->producer != nullptr || constant->sparse)
    return std::nullopt;
  if (is_computed(constant->constant->data)) return std::nullopt;
  const auto dims = aligned_dims(node, *constant->constant, channels.rank);
  const int64_t count = constant->constant->count();
  if (!dims || (count != 1 && (count != channels.count || (*dims)[static_cast<size_t>(channels.axis)] != count)))
    return std::nullopt;
  auto numbers = floats_of(*constant->constant, channels.count);
  if (numbers && count == 1) numbers->resize(static_cast<size_t>(channels.count), numbers->front());
  return numbers;
}

/// What arithmetic with a constant does to each channel of the layer in front of it.
std::optional<PerChannel> find_arithmetic(const Node& node, bool is_first, const Node& layer) {
  const auto channels = find_channels(layer);
  if (!channels) return std::nullopt;
  const auto count = static_cast<size_t>(channels->count);
  if (is_onnx(node, kNeg)) return PerChannel{.factor = std::vector<double>(count, -1)};
  Value* constant = node.input(is_first ? 1 : 0);
  auto numbers = numbers_by_channel(node, constant, *channels);
  if (!numbers) return std::nullopt;
  if (is_onnx(node, kMul)) return PerChannel{.factor = std::move(*numbers)};
  if (is_onnx(node, kDiv)) {
    if (!is_first) return std::nullopt;
    for (double& number : *numbers) number = 1 / number;
    return PerChannel{.factor = std::move(*numbers)};
  }
  PerChannel result{.near = constant};
  if (is_onnx(node, kSub)) {
    if (is_first) {
      for (double& number : *numbers) number = -number;
    } else {
      result.factor.assign(count, -1);
    }
  }
  result.offset = std::move(*numbers);
  return result;
}

/// 1. BatchNormalization(layer(x, W, b)) with constants: layer(x, W * factor, b * factor + offset)
bool fuse_normalisation(Node& node) {
  const auto change = find_normalisation(node);
  if (!change) return false;
  Node* layer = layer_before(node, node.input(0));
  if (layer == nullptr || !absorb(*layer, *change)) return false;
  take_place(*layer, node);
  return true;
}

/// 2. layer(x, W, b) + c, - c, * c, / c, c - layer, -layer with a number for each channel, or for all
bool fuse_arithmetic(Node& node) {
  const bool is_arithmetic =
      is_onnx(node, kAdd) || is_onnx(node, kSub) || is_onnx(node, kMul) || is_onnx(node, kDiv) || is_onnx(node, kNeg);
  if (!is_arithmetic) return false;
  for (const bool is_first : {true, false}) {
    Node* layer = layer_before(node, node.input(is_first ? 0 : 1));
    if (layer == nullptr) continue;
    const auto change = find_arithmetic(node, is_first, *layer);
    if (!change || !absorb(*layer, *change)) continue;
    take_place(*layer, node);
    return true;
  }
  return false;
}

}  // namespace

bool fuse_scales(Node& node, Rewriter&) { return fuse_normalisation(node) || fuse_arithmetic(node); }

void fuse_normalisations(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) fuse_normalisations(*subgraph);
    fuse_normalisation(*node);
    node = next;
  }
  if (graph.owner == nullptr) remove_dead_code(graph);  // what the normalisations no longer use
}

}  // namespace tonnx
