// plain_layers.cpp - the layers of PyTorch that have no weights take the arguments of the functions of their names.
#include "modules/plain_layers.h"

#include <fmt/format.h>

#include <map>

#include "ops/frame/emission.h"

namespace tonnx {
namespace {

/// Functions whose arguments behind the tensor are those of the layer.
const std::map<std::string_view, std::string_view>& layer_names() {
  static const std::map<std::string_view, std::string_view> names{
      {"F.relu", "nn.ReLU"},
      {"F.relu6", "nn.ReLU6"},
      {"F.gelu", "nn.GELU"},
      {"F.silu", "nn.SiLU"},
      {"F.mish", "nn.Mish"},
      {"F.elu", "nn.ELU"},
      {"F.hardswish", "nn.Hardswish"},
      {"F.hardsigmoid", "nn.Hardsigmoid"},
      {"F.hardtanh", "nn.Hardtanh"},
      {"F.leaky_relu", "nn.LeakyReLU"},
      {"F.softplus", "nn.Softplus"},
      {"F.softmax", "nn.Softmax"},
      {"F.log_softmax", "nn.LogSoftmax"},
      {"torch.sigmoid", "nn.Sigmoid"},
      {"torch.tanh", "nn.Tanh"},
      {"F.max_pool1d", "nn.MaxPool1d"},
      {"F.max_pool2d", "nn.MaxPool2d"},
      {"F.max_pool3d", "nn.MaxPool3d"},
      {"F.avg_pool1d", "nn.AvgPool1d"},
      {"F.avg_pool2d", "nn.AvgPool2d"},
      {"F.avg_pool3d", "nn.AvgPool3d"},
      {"F.adaptive_avg_pool1d", "nn.AdaptiveAvgPool1d"},
      {"F.adaptive_avg_pool2d", "nn.AdaptiveAvgPool2d"},
      {"F.adaptive_avg_pool3d", "nn.AdaptiveAvgPool3d"},
      {"F.pixel_shuffle", "nn.PixelShuffle"},
  };
  return names;
}

}  // namespace

std::string plain_layer(const Node& node) {
  if (node.domain != "aten" || node.inputs().size() != 1 || node.outputs().size() != 1) return "";
  const AtenOpEntry* entry = find_aten_op(node);
  if (entry == nullptr) return "";
  const Emission emission(node, *entry, [](const Value*, int) { return std::string("x"); });
  const std::string text = spell(emission, *entry->op).first;
  const size_t bracket = text.find('(');
  if (bracket == std::string::npos || text.back() != ')') return "";
  const std::string function = text.substr(0, bracket);
  const std::string arguments = text.substr(bracket + 1, text.size() - bracket - 2);
  if (function == "x.flatten") {  // which begins with the first dimension, and the layer with the second
    const bool says_where = !arguments.empty() && arguments[0] >= '0' && arguments[0] <= '9';
    return says_where ? fmt::format("nn.Flatten({})", arguments) : arguments.empty() ? "nn.Flatten(0)" : "";
  }
  if (function == "x.sigmoid" || function == "x.tanh") return function == "x.tanh" ? "nn.Tanh()" : "nn.Sigmoid()";
  const auto layer = layer_names().find(function);
  if (layer == layer_names().end()) return "";
  if (arguments == "x") return fmt::format("{}()", layer->second);
  if (!arguments.starts_with("x, ")) return "";
  return fmt::format("{}({})", layer->second, arguments.substr(3));
}

}  // namespace tonnx
