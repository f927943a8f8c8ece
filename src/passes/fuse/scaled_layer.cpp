// scaled_layer.cpp - scales weights of layers, large ones while they are written.
#include "passes/fuse/scaled_layer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/computed.h"
#include "base/scratch.h"
#include "ir/cast_numbers.h"
#include "ir/scaled.h"
#include "passes/frame/op_symbols.h"
#include "passes/frame/rewriter.h"

namespace tonnx {
namespace {

constexpr int64_t kMostChannels = int64_t{1} << 24;

bool is_initializer(const Value* value) { return value != nullptr && value->constant && value->producer == nullptr; }

bool has_floats(const Value* value) {
  return !value->sparse &&
         contains(dtype_set(DType::Float32, DType::Float64, DType::Float16, DType::BFloat16), value->constant->dtype);
}

/// Whether a BatchNormalization takes means and variances as they are given, one for each channel.
bool is_inference(const Node& norm) {
  if (int_of(norm, "training_mode").value_or(0) != 0 || int_of(norm, "spatial").value_or(1) == 0) return false;
  if (norm.version < 7 && int_of(norm, "is_test").value_or(0) == 0) return false;
  for (size_t i = 1; i < norm.outputs().size(); ++i) {
    if (norm.output(i) != nullptr && (norm.version < 14 || !norm.output(i)->uses.empty())) return false;
  }
  return true;
}

}  // namespace

std::optional<PerChannel> find_normalisation(const Node& node) {
  if (!is_onnx(node, kBatchNormalization) || !is_inference(node)) return std::nullopt;
  std::vector<double> parts[4];
  for (size_t i = 0; i < 4; ++i) {
    const Value* value = node.input(i + 1);
    if (!is_initializer(value) || !has_floats(value) || is_computed(value->constant->data)) return std::nullopt;
    const auto numbers = floats_of(*value->constant, kMostChannels);
    if (!numbers || (i > 0 && numbers->size() != parts[0].size())) return std::nullopt;
    parts[i] = *numbers;
  }
  PerChannel result{.near = node.input(2)};
  const double epsilon = float_of(node, "epsilon").value_or(1e-5);
  for (size_t c = 0; c < parts[0].size(); ++c) {
    result.factor.push_back(parts[0][c] / std::sqrt(parts[3][c] + epsilon));
    result.offset.push_back(parts[1][c] - parts[2][c] * result.factor[c]);
  }
  return result;
}

namespace {

std::optional<ChannelLayout> find_layout(const Node& node) {
  const Value* weight = node.input(1);
  if (!is_initializer(weight) || weight->uses.size() != 1 || !has_floats(weight)) return std::nullopt;
  const auto& dims = weight->constant->dims;
  const auto product = [&](size_t from) {
    int64_t count = 1;
    for (size_t i = from; i < dims.size(); ++i) count *= dims[i];
    return count;
  };
  if (product(0) == 0) return std::nullopt;
  if (is_onnx(node, kConv) && dims.size() > 2) return ChannelLayout{product(1), dims[0], 0, dims[0]};
  if (is_onnx(node, kConvTranspose) && dims.size() > 2) {
    const int64_t groups = int_of(node, "group").value_or(1);
    if (groups < 1 || dims[0] % groups != 0) return std::nullopt;
    return ChannelLayout{product(2), dims[1], dims[0] / groups * product(1), dims[1] * groups};
  }
  if (dims.size() != 2) return std::nullopt;
  if (is_onnx(node, kMatMul)) return ChannelLayout{1, dims[1], 0, dims[1]};
  // before opset 7 a flag says whether the bias is one for all rows
  if (!is_onnx(node, kGemm) || node.version < 7 || float_of(node, "beta").value_or(1) != 1) return std::nullopt;
  const bool is_transposed = int_of(node, "transB").value_or(0) != 0;
  return is_transposed ? ChannelLayout{dims[1], dims[0], 0, dims[0]} : ChannelLayout{1, dims[1], 0, dims[1]};
}

/// A weight as the file has it, and what each of its channels is multiplied by.
struct Scaling {
  Tensor weights;
  std::vector<double> factor;
};

/// Nothing where the bytes are computed in another way.
std::optional<Scaling> find_scaling(const Tensor& weight, const ChannelLayout& layout,
                                    const std::vector<double>& factor) {
  Scaling result;
  result.factor = factor;
  const auto* before = dynamic_cast<const ScaledNumbers*>(weight.data.owner().get());
  if (before == nullptr && is_computed(weight.data)) return std::nullopt;
  result.weights.dtype = weight.dtype;
  result.weights.dims = weight.dims;
  result.weights.data = before ? before->weights().data : weight.data;
  if (before == nullptr) return result;
  if (!(before->layout() == layout)) return std::nullopt;
  for (size_t c = 0; c < factor.size(); ++c) result.factor[c] *= before->factor()[c];
  return result;
}

/// The numbers that a type holds exactly: the largest, and the smallest that has all digits.
struct Range {
  double smallest, largest;
};
Range range_of(DType dtype) {
  if (dtype == DType::Float64) return {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
  if (dtype == DType::Float16) return {std::ldexp(1.0, -14), 65504};
  if (dtype == DType::BFloat16) return {std::numeric_limits<float>::min(), 3.38953139e38};
  return {std::numeric_limits<float>::min(), std::numeric_limits<float>::max()};
}

/// Whether scaled weights stay numbers, and the largest of each channel keeps its digits.
bool stays_exact(const Scaling& scaling, const ChannelLayout& layout) {
  const Range range = range_of(scaling.weights.dtype);
  const std::vector<double> largest = largest_of_channels(scaling.weights, layout);
  for (size_t c = 0; c < largest.size(); ++c) {
    const double product = largest[c] * std::abs(scaling.factor[c]);
    if (!std::isfinite(largest[c]) || !std::isfinite(scaling.factor[c]) || product > range.largest) return false;
    if (largest[c] != 0 && scaling.factor[c] != 0 && product < range.smallest) return false;
  }
  return true;
}

TensorPtr scaled(Scaling scaling, const ChannelLayout& layout) {
  auto result = std::make_shared<Tensor>();
  result->dtype = scaling.weights.dtype;
  result->dims = scaling.weights.dims;
  constexpr size_t kLarge = size_t{1} << 16;
  const size_t size = scaling.weights.data.size();
  auto owner = std::make_shared<const ScaledNumbers>(std::move(scaling.weights), layout, std::move(scaling.factor));
  if (size >= kLarge) {
    result->data = Bytes(owner, owner->begin(), size);
    return result;
  }
  Scratch bytes(size);
  owner->compute(0, bytes.data(), size);
  result->data = bytes.done();
  return result;
}

/// The layer's bias after the change; nothing where it is not constant, or one for each row.
std::optional<std::vector<double>> find_bias(const Value* bias, const PerChannel& change, size_t channels) {
  std::vector<double> result = change.offset;
  result.resize(channels);
  if (bias == nullptr) return result;
  if (!is_initializer(bias) || !has_floats(bias) || is_computed(bias->constant->data)) return std::nullopt;
  const auto numbers = floats_of(*bias->constant, kMostChannels);
  if (!numbers || (numbers->size() != channels && numbers->size() != 1)) return std::nullopt;
  if (numbers->size() != 1 && bias->constant->dims.back() != static_cast<int64_t>(channels)) return std::nullopt;
  for (size_t c = 0; c < channels; ++c)
    result[c] += (*numbers)[numbers->size() == 1 ? 0 : c] * (change.factor.empty() ? 1 : change.factor[c]);
  return result;
}

bool fits(const std::vector<double>& numbers, DType dtype) {
  const double largest = range_of(dtype).largest;
  return std::all_of(numbers.begin(), numbers.end(), [&](double number) { return std::abs(number) <= largest; });
}

/// The initializer that is to hold the new bias: the layer's own, that of what follows it, or a new one.
Value* bias_value(const Node& layer, Value* near, const TensorPtr& tensor) {
  for (Value* candidate : {layer.input(2), near}) {
    if (candidate == nullptr || candidate->uses.size() != 1) continue;
    candidate->constant = tensor;
    candidate->type = Type::tensor(tensor->dtype, Shape(tensor->dims.begin(), tensor->dims.end()));
    return candidate;
  }
  const Value* like = near ? near : layer.input(2);
  Value* made = layer.graph->add_initializer(like->name, tensor);
  made->trainable = like->trainable;
  return made;
}

}  // namespace

std::optional<int64_t> output_channels(const Node& layer) {
  const auto layout = find_layout(layer);
  return layout && layout->channels <= kMostChannels ? std::optional(layout->channels) : std::nullopt;
}

bool absorb(Node& layer, const PerChannel& change) {
  const auto layout = find_layout(layer);
  if (!layout) return false;
  const auto channels = static_cast<size_t>(layout->channels);
  if ((!change.factor.empty() && change.factor.size() != channels) ||
      (!change.offset.empty() && change.offset.size() != channels))
    return false;
  Value* weight = layer.input(1);
  const DType dtype = weight->constant->dtype;
  std::optional<std::vector<double>> bias;
  if (!change.offset.empty() || layer.input(2) != nullptr) {
    bias = find_bias(layer.input(2), change, channels);
    if (!bias || !fits(*bias, dtype) || is_onnx(layer, kMatMul)) return false;
  }
  if (!change.factor.empty()) {
    weight->constant = with_cast_made(weight->constant);  // its largest numbers are looked for
    auto scaling = find_scaling(*weight->constant, *layout, change.factor);
    if (!scaling || !stays_exact(*scaling, *layout)) return false;
    weight->constant = scaled(std::move(*scaling), *layout);
  }
  if (!bias) return true;
  Value* with = bias_value(layer, change.near, make_floats(dtype, {layout->channels}, *bias));
  layer.set_input(2, with);
  return true;
}

}  // namespace tonnx
