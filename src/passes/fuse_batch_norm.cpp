// fuse_batch_norm.cpp - ONNX: a normalisation by constants behind a convolution becomes a part of its weights.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/computed.h"
#include "base/scratch.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

bool is_onnx(const Node* node, const char* op) {
  return node != nullptr && node->domain.empty() && node->op == Symbol(op);
}

double float_of(const Node& node, const char* name, double otherwise) {
  const Attribute* given = node.find_attribute(name);
  const auto* value = given ? given->value.get<double>() : nullptr;
  return value ? *value : otherwise;
}

int64_t int_of(const Node& node, const char* name, int64_t otherwise) {
  const Attribute* given = node.find_attribute(name);
  const auto* value = given ? given->value.get<int64_t>() : nullptr;
  return value ? *value : otherwise;
}

bool is_initializer(const Value* value) { return value != nullptr && value->constant && value->producer == nullptr; }
bool has_floats(const Value* value) { return is_float(value->constant->dtype) && !value->sparse; }

/// y = factor * x + offset for each channel; nothing where the node is no such thing.
struct PerChannel {
  std::vector<double> factor, offset;
};
std::optional<PerChannel> find_per_channel(const Node& node) {
  if (!is_onnx(&node, "BatchNormalization") || int_of(node, "training_mode", 0) != 0) return std::nullopt;
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->uses.empty()) return std::nullopt;
  }
  std::vector<double> parts[4];
  for (size_t i = 0; i < 4; ++i) {
    const Value* value = node.input(i + 1);
    if (!is_initializer(value) || !has_floats(value)) return std::nullopt;
    const auto numbers = floats_of(*value->constant, int64_t{1} << 24);
    if (!numbers || (i > 0 && numbers->size() != parts[0].size())) return std::nullopt;
    parts[i] = *numbers;
  }
  PerChannel result;
  const double epsilon = float_of(node, "epsilon", 1e-5);
  for (size_t c = 0; c < parts[0].size(); ++c) {
    result.factor.push_back(parts[0][c] / std::sqrt(parts[3][c] + epsilon));
    result.offset.push_back(parts[1][c] - parts[2][c] * result.factor[c]);
  }
  return result;
}

/// Where the output channels lie in the weight: elements of `inner` that follow each other belong to one of `outer`
/// channels, and every `block` of elements of the weight is another group.
struct Layout {
  int64_t inner = 1, outer = 1, block = 0;

  size_t channel(int64_t element) const {
    const int64_t in_group = element / inner % outer;
    return static_cast<size_t>(block > 0 ? element / block * outer + in_group : in_group);
  }
};

std::optional<Layout> find_layout(const Node& node, const Tensor& weight, size_t channels) {
  const auto& dims = weight.dims;
  const auto product = [&](size_t from) {
    int64_t count = 1;
    for (size_t i = from; i < dims.size(); ++i) count *= dims[i];
    return count;
  };
  const auto wanted = static_cast<int64_t>(channels);
  if (weight.count() == 0) return std::nullopt;
  if (is_onnx(&node, "Conv") && dims.size() > 2 && dims[0] == wanted) return Layout{product(1), wanted, 0};
  if (is_onnx(&node, "ConvTranspose") && dims.size() > 2) {
    const int64_t groups = int_of(node, "group", 1);
    if (groups < 1 || dims[0] % groups != 0 || dims[1] * groups != wanted) return std::nullopt;
    return Layout{product(2), dims[1], dims[0] / groups * product(1)};
  }
  if (!is_onnx(&node, "Gemm") || dims.size() != 2 || float_of(node, "beta", 1) != 1) return std::nullopt;
  const bool is_turned = int_of(node, "transB", 0) != 0;
  if (dims[is_turned ? 0 : 1] != wanted) return std::nullopt;
  return is_turned ? Layout{dims[1], wanted, 0} : Layout{1, wanted, 0};
}

/// The weights of a large layer, scaled when they are written.
class ScaledFloats : public ComputedBytes {
 public:
  ScaledFloats(Bytes weights, const Layout& layout, std::vector<double> factor)
      : weights_(std::move(weights)), layout_(layout), factor_(std::move(factor)) {}

  const uint8_t* begin() const override { return weights_.data(); }
  size_t size() const override { return weights_.size(); }

  void compute(size_t offset, uint8_t* into, size_t size) const override {
    const auto end = static_cast<int64_t>((offset + size) / sizeof(float));
    auto at = static_cast<int64_t>(offset / sizeof(float));
    const uint8_t* from = weights_.data() + offset;
    while (at < end) {  // a run of elements of one channel at a time
      const double by = factor_[layout_.channel(at)];
      const int64_t stop = std::min(end, (at / layout_.inner + 1) * layout_.inner);
      for (; at + kBlock <= stop; at += kBlock, from += sizeof(Block), into += sizeof(Block)) {
        Block numbers;  // the bytes of a file may lie at any address
        std::memcpy(numbers, from, sizeof(Block));
        for (int64_t i = 0; i < kBlock; ++i) numbers[i] = static_cast<float>(numbers[i] * by);
        std::memcpy(into, numbers, sizeof(Block));
      }
      for (; at < stop; ++at, from += sizeof(float), into += sizeof(float)) {
        float number = 0;
        std::memcpy(&number, from, sizeof(float));
        number = static_cast<float>(number * by);
        std::memcpy(into, &number, sizeof(float));
      }
    }
  }

 private:
  static constexpr int64_t kBlock = 16;
  using Block = float[kBlock];

  Bytes weights_;
  Layout layout_;
  std::vector<double> factor_;
};

TensorPtr scaled(const Tensor& weight, const Layout& layout, const std::vector<double>& factor) {
  auto result = std::make_shared<Tensor>();
  result->dtype = weight.dtype;
  result->dims = weight.dims;
  constexpr size_t kLarge = size_t{1} << 16;
  if (weight.dtype == DType::Float32 && weight.data.size() >= kLarge) {
    auto owner = std::make_shared<const ScaledFloats>(weight.data, layout, factor);
    result->data = Bytes(owner, owner->begin(), owner->size());
    return result;
  }
  Scratch bytes(weight.data.size());
  for (int64_t i = 0; i < weight.count(); ++i) {
    const double value = element_as_double(weight, i) * factor[layout.channel(i)];
    set_element_bits(weight.dtype, bytes.data(), i, bits_of(weight.dtype, value));
  }
  result->data = bytes.done();
  return result;
}

/// The normalisation of the layer's bias, or of no bias.
std::optional<std::vector<double>> find_bias(const Value* bias, const PerChannel& norm) {
  std::vector<double> result = norm.offset;
  if (bias == nullptr) return result;
  if (!is_initializer(bias) || !has_floats(bias)) return std::nullopt;
  const auto numbers = floats_of(*bias->constant, int64_t{1} << 24);
  if (!numbers || (numbers->size() != result.size() && numbers->size() != 1)) return std::nullopt;
  const auto& dims = bias->constant->dims;
  if (numbers->size() != 1 && dims.back() != static_cast<int64_t>(numbers->size())) return std::nullopt;
  for (size_t c = 0; c < result.size(); ++c) result[c] += (*numbers)[numbers->size() == 1 ? 0 : c] * norm.factor[c];
  return result;
}

/// The initializer that is to hold the new bias: the layer's own, that of the normalisation, or a new one.
Value* bias_value(const Node& layer, const Node& norm, const TensorPtr& tensor) {
  for (Value* candidate : {layer.input(2), norm.input(2)}) {
    if (candidate == nullptr || candidate->uses.size() != 1) continue;
    candidate->constant = tensor;
    candidate->type = Type::tensor(tensor->dtype, Shape(tensor->dims.begin(), tensor->dims.end()));
    return candidate;
  }
  Value* near = norm.input(2);
  Value* made = near->graph->add_initializer(near->name, tensor);
  made->trainable = near->trainable;
  return made;
}

bool fuse(Node& norm) {
  const auto per_channel = find_per_channel(norm);
  Value* x = norm.input(0);
  if (!per_channel || x == nullptr || x->uses.size() != 1 || x->graph != norm.graph) return false;
  Node* layer = x->producer;
  Value* weight = layer ? layer->input(1) : nullptr;
  if (!is_initializer(weight) || weight->uses.size() != 1 || !has_floats(weight)) return false;
  const auto layout = find_layout(*layer, *weight->constant, per_channel->factor.size());
  if (!layout) return false;
  const auto bias = find_bias(layer->input(2), *per_channel);
  if (!bias) return false;
  const DType dtype = weight->constant->dtype;
  weight->constant = scaled(*weight->constant, *layout, per_channel->factor);
  Value* with = bias_value(*layer, norm, make_floats(dtype, {static_cast<int64_t>(bias->size())}, *bias));
  norm.resize_inputs(0);
  layer->set_input(2, with);
  norm.graph->move_output(norm.output(0), layer, 0);
  norm.graph->erase(&norm);
  return true;
}

}  // namespace

void fuse_batch_norm(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) fuse_batch_norm(*subgraph);
    // 1. BatchNormalization(Conv(x, W, b)) with constants -> Conv(x, W * factor, b * factor + offset)
    fuse(*node);
    node = next;
  }
  // 2. What the normalisations no longer use.
  if (graph.owner == nullptr) remove_dead_code(graph);
}

}  // namespace tonnx
