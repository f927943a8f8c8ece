// conv_bias.cpp - aten: what is added to each channel of a convolution becomes its bias.
#include "ops/frame/python_names.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// How many channels a convolution without a bias gives; nothing for other nodes.
std::optional<int64_t> find_channels(const Node* node) {
  const bool is_plain = is_aten(node, "conv1d") || is_aten(node, "conv2d") || is_aten(node, "conv3d");
  const bool is_transposed = is_aten(node, "conv_transpose1d") || is_aten(node, "conv_transpose2d", "input") ||
                             is_aten(node, "conv_transpose3d", "input");
  if ((!is_plain && !is_transposed) || node->find_attribute("bias")) return std::nullopt;
  const Value* weight = operand(*node, "weight");
  if (weight == nullptr || !weight->constant || weight->constant->dims.size() < 3) return std::nullopt;
  const Attribute* groups = node->find_attribute("groups");
  const auto* count = groups ? groups->value.get<int64_t>() : nullptr;
  if (groups && !count) return std::nullopt;
  return is_plain ? weight->constant->dims[0] : weight->constant->dims[1] * (count ? *count : 1);
}

/// Whether two weights are of different modules, as their names say: `pointwise.weight` and `bias`.
bool are_of_different_modules(const Value& a, const Value& b) {
  const auto module_of = [](const Value& value) { return value.name.substr(0, value.name.rfind('.')); };
  return python::is_state_key(a.name) && python::is_state_key(b.name) && module_of(a) != module_of(b);
}

/// Whether the constant holds one number for each channel: [1, C, 1, 1] or [C, 1, 1] for two spatial dimensions.
bool is_per_channel(const Value* value, int64_t channels, size_t spatial) {
  if (value == nullptr || !value->constant || value->uses.size() != 1) return false;
  std::vector<int64_t> dims{channels};
  dims.insert(dims.end(), spatial, 1);
  if (value->constant->dims == dims) return true;
  dims.insert(dims.begin(), 1);
  return value->constant->dims == dims;
}

Graph& root_of(Graph& graph) {
  Graph* root = &graph;
  while (root->owner != nullptr) root = root->owner->graph;
  return *root;
}

}  // namespace

void fold_conv_bias(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) fold_conv_bias(*subgraph);
    // add(conv(x, W), b) with a constant b of one number for each channel -> conv(x, W, b)
    if (is_aten(node, "add", "Tensor") && !node->find_attribute("alpha")) {
      Value *a = operand(*node, "self"), *b = operand(*node, "other");
      const Node* conv = single_use_producer(a, graph);
      if (!find_channels(conv)) {
        std::swap(a, b);
        conv = single_use_producer(a, graph);
      }
      const auto channels = find_channels(conv);
      const Value* weight = channels ? operand(*conv, "weight") : nullptr;
      if (channels && is_per_channel(b, *channels, weight->constant->dims.size() - 2) &&
          !are_of_different_modules(*weight, *b)) {
        auto tensor = std::make_shared<Tensor>(*b->constant);
        tensor->dims = {*channels};
        Graph& root = root_of(graph);
        Value* bias = root.add_initializer(b->name, tensor);
        bias->trainable = b->trainable;
        add_operand(*a->producer, "bias", bias);
        graph.replace_uses(node->output(0), a);
        graph.erase(node);
      }
    }
    node = next;
  }
}

}  // namespace tonnx
