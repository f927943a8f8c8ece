// tensorflow_names.cpp - which parts of TensorFlow's names are layers, and which are the operators inside of them.
#include "passes/names/tensorflow_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/identifier.h"
#include "base/join.h"

namespace tonnx {
namespace {

using Parts = std::vector<std::string>;

/// Calls of functions, which are no layers.
constexpr std::string_view kCalls[] = {"Func", "PartitionedCall", "StatefulPartitionedCall"};
/// What Keras's layers, and what they are made of, call their operators.
constexpr std::string_view kOperators[] = {"Add",
                                           "AddV2",
                                           "BiasAdd",
                                           "Conv1D",
                                           "Conv2D",
                                           "Conv3D",
                                           "DepthwiseConv2dNative",
                                           "Einsum",
                                           "FusedBatchNorm",
                                           "FusedBatchNormV3",
                                           "GatherV2",
                                           "MatMul",
                                           "Mul",
                                           "ReadVariableOp",
                                           "Relu",
                                           "Relu6",
                                           "ResourceGather",
                                           "Tensordot",
                                           "add",
                                           "batchnorm",
                                           "einsum",
                                           "embedding_lookup",
                                           "mul",
                                           "sub"};
/// Operators that add a weight.
constexpr std::string_view kSums[] = {"Add", "AddV2", "BiasAdd", "add", "sub"};
/// What quantisers put behind names.
constexpr std::string_view kQuantised[] = {"_quant",     "_QuantizeLinear", "_DequantizeLinear", "_quantized_scale",
                                           "_quantized", "_scale",          "_zero_point"};

template <size_t N>
bool is_one_of(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

/// Without `_12` and the like.
std::string_view without_number(std::string_view word, std::string_view before) {
  const size_t at = word.rfind(before);
  return at != std::string_view::npos && at > 0 && is_digits(word.substr(at + before.size())) ? word.substr(0, at)
                                                                                              : word;
}

std::string_view without_quantiser(std::string_view name) {
  for (const std::string_view ending : kQuantised) {
    if (name.size() > ending.size() && name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

/// `const_fold_opt__12`, `Add__17:0_quantized`: tf2onnx puts numbers behind names of its own.
bool is_made_by_tool(std::string_view name) {
  const size_t at = name.find("__");
  if (at == std::string_view::npos || at == 0 || name.find('.') != std::string_view::npos) return false;
  size_t end = at + 2;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
  return end > at + 2 && (end == name.size() || name[end] == ':' || name[end] == '_');
}

bool is_tensorflow(std::string_view name) { return !name.starts_with('/') && name.find('/') != std::string_view::npos; }

Parts split(std::string_view name) {
  Parts parts;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    if (end > start) parts.emplace_back(name.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

struct LayerPath {
  Parts layer;
  Parts operators;  // inside of it, outermost first
};

LayerPath layer_path(std::string_view name) {
  name = name.substr(0, name.find(';'));  // TFLite has all names of the nodes that became one
  name = without_number(without_number(without_quantiser(without_number(name, ":")), ":"), "__");
  LayerPath path{split(name), {}};
  std::erase_if(path.layer, [](const std::string& part) {
    return is_one_of(without_number(part, "_"), kCalls) || is_made_by_tool(part);
  });
  const auto is_inside = [](std::string_view part) {
    return is_one_of(without_number(part, "_"), kOperators) || is_digits(part);
  };
  while (!path.layer.empty() && is_inside(path.layer.back())) {
    path.operators.insert(path.operators.begin(), path.layer.back());
    path.layer.pop_back();
  }
  return path;
}

/// `model/lstm` of `Func/model/lstm/PartitionedCall/input/_3:0`.
bool is_input_of_function(const Parts& parts) {
  return parts.size() >= 2 && parts.back().starts_with('_') && is_digits(std::string_view(parts.back()).substr(1)) &&
         parts[parts.size() - 2] == "input";
}

}  // namespace

std::string tensorflow_node_name(const std::string& name) {
  if (!is_tensorflow(name)) return is_made_by_tool(name) ? "" : name;
  const LayerPath path = layer_path(name);
  if (path.layer.empty()) return "";
  return joined(path.layer, "/") + (path.operators.empty() ? "" : "/Op");
}

std::string tensorflow_weight_name(const std::string& name) {
  if (!is_tensorflow(name)) {
    if (is_made_by_tool(name)) return "";
    const std::string_view layer = without_number(name, "_initializer_");
    return layer.size() < name.size() ? std::string(layer) + "/weight" : name;
  }
  LayerPath path = layer_path(name);
  if (is_input_of_function(path.layer)) {
    path.layer.resize(path.layer.size() - 2);
    path.operators.emplace_back("ReadVariableOp");
  }
  if (path.operators.empty() || path.layer.empty()) return joined(path.layer, "/");
  const bool is_sum =
      std::any_of(path.operators.begin(), path.operators.end(),
                  [](const std::string& word) { return is_one_of(without_number(word, "_"), kSums); }) ||
      path.operators == Parts{"batchnorm", "ReadVariableOp"};
  return joined(path.layer, "/") + (is_sum ? "/bias" : "/weight");
}

}  // namespace tonnx
