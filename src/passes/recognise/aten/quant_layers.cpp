// quant_layers.cpp - aten: recognises layers whose input is quantised as it comes, by its own range.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "ir/origins.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"
#include "passes/recognise/aten/quant_input.h"

namespace tonnx {
namespace {

/// a op b with the tensors in either order, without alpha: the one that is not `known`; null elsewhere.
Value* other_of(const Node* node, std::string_view op, const Value* known) {
  if (!is_aten(node, op, "Tensor") || node->find_attribute("alpha")) return nullptr;
  Value *a = operand(*node, "self"), *b = operand(*node, "other");
  if (a == known) return b;
  return b == known ? a : nullptr;
}

/// What an element type was given to; null for other values.
Value* cast_to(const Value* value, DType dtype) {
  const Node* node = maker(value);
  const Attribute* to = is_aten(node, "to", "dtype") ? node->find_attribute("dtype") : nullptr;
  const auto* given = to ? to->value.get<DType>() : nullptr;
  return given && *given == dtype ? operand(*node, "self") : nullptr;
}

/// A convolution without a bias whose window is known.
const Node* find_conv(const Value* value, const Graph& graph) {
  constexpr std::array<std::string_view, 4> kWindow{"stride", "padding", "dilation", "groups"};
  const Node* node = maker(value);
  const bool is_conv = is_aten(node, "conv1d") || is_aten(node, "conv2d") || is_aten(node, "conv3d");
  if (!is_conv || node->graph != &graph || node->find_attribute("bias") || node->inputs().size() != 2) return nullptr;
  const bool is_plain = std::all_of(kWindow.begin(), kWindow.end(), [&](std::string_view name) {
    const Attribute* found = node->find_attribute(name);
    return !found || found->value.get<int64_t>() || found->value.get<std::vector<int64_t>>();
  });
  return is_plain ? node : nullptr;
}

/// conv2d: 2.
size_t spatial_dims(const Node& conv) { return static_cast<size_t>(conv.op.view()[4] - '0'); }

/// Whether a shape is one size beside ones, at the place of the channels: [1, C, 1, 1], [C, 1, 1].
bool is_per_channel(const std::vector<int64_t>& dims, int64_t channels, size_t spatial) {
  std::vector<int64_t> wanted{channels};
  wanted.insert(wanted.end(), spatial, 1);
  if (dims == wanted) return true;
  wanted.insert(wanted.begin(), 1);
  return dims == wanted;
}

/// The product of a quantised layer as a float, before its scale; the bias that was added to its integers.
struct Sum {
  Value* product = nullptr;
  Value* bias = nullptr;
};
/// float(int(product) + int(floor(bias / factor)) for each channel): as quantisers of some years ago add a bias.
Sum find_whole_sum(const Value* value, const Value* factor, const Graph& graph) {
  const Node* sum = maker(cast_to(value, DType::Float32));
  if (!is_aten(sum, "add", "Tensor") || sum->find_attribute("alpha") || sum->graph != &graph) return {};
  Value *a = operand(*sum, "self"), *b = operand(*sum, "other");
  if (a && !find_conv(cast_to(a, DType::Int32), graph)) std::swap(a, b);
  Value* product = cast_to(a, DType::Int32);
  const Node* shaped = maker(b);
  const Node* floor = is_aten(shaped, "reshape") ? maker(cast_to(operand(*shaped, "self"), DType::Int32)) : nullptr;
  const Node* quotient = is_aten(floor, "floor") ? maker(operand(*floor, "self")) : nullptr;
  if (!product || !is_aten(quotient, "div", "Tensor") || operand(*quotient, "other") != factor) return {};
  Value* bias = operand(*quotient, "self");
  const auto& shape = b->type.shape;
  if (bias == nullptr || !bias->constant || bias->uses.size() != 1 || bias->constant->dims.size() != 1 || !shape)
    return {};
  std::vector<int64_t> dims;
  for (const auto& size : *shape) dims.push_back(size.constant().value_or(-1));
  const Node* conv = find_conv(product, graph);
  if (!conv || !is_per_channel(dims, bias->constant->dims[0], spatial_dims(*conv))) return {};
  return {product, bias};
}

/// What the names of a layer's tensors begin with: `fc.` for `fc.weight_quantized`.
std::string base_of(const std::string& weight) {
  constexpr std::string_view kWeight = ".weight_quantized";
  if (weight.ends_with(kWeight)) return weight.substr(0, weight.size() - kWeight.size() + 1);
  return weight + (weight.find('.') == std::string::npos ? "_" : ".");
}

class QuantLayers {
 public:
  explicit QuantLayers(Graph& root) : root_(root) {}

  void run(Graph& graph) {
    for (Node* node = graph.first(); node != nullptr;) {
      Node* next = node->next;
      for (const GraphPtr& subgraph : subgraphs_of(*node)) run(*subgraph);
      Node* last = is_aten(node, "mul", "Tensor") ? replace(graph, *node) : nullptr;
      if (last != nullptr) {
        if (next == last) next = last->next;
        graph.erase(last);
      }
      node = next;
    }
    remove_unused_nodes(graph);
  }

 private:
  using Key = std::tuple<double, int64_t, const Value*>;
  struct Layer {
    Key key;
    Value* scale = nullptr;
    Value* zero_point = nullptr;
  };

  /// 1. (quantised x) @ (weight - zero point) * (step * scale), and the sum with a bias behind it
  /// 2. the same with a convolution, or with a bias that is added to its integers
  /// Returns the node that nobody uses any more.
  Node* replace(Graph& graph, Node& node) {
    Value *product = operand(node, "self"), *factor = operand(node, "other");
    if (!find_scale(factor)) std::swap(product, factor);
    const auto scale = find_scale(factor);
    if (!scale) return nullptr;
    const Sum whole = find_whole_sum(product, factor, graph);
    if (whole.product != nullptr && product->uses.size() == 1) return replace_conv(graph, node, whole, factor, *scale);
    if (is_aten(maker(product), "matmul")) return replace_linear(graph, node, *product, factor, *scale);
    return find_conv(product, graph) ? replace_conv(graph, node, {product, nullptr}, factor, *scale) : nullptr;
  }

  static std::optional<double> find_scale(const Value* factor) {
    const Node* scaling = maker(factor);
    return is_aten(scaling, "mul", "Scalar") ? number_of(*scaling, "other") : std::nullopt;
  }

  Node* replace_linear(Graph& graph, Node& node, Value& product, const Value* factor, double scale) {
    const Node* matmul = product.producer;
    if (matmul->graph != &graph) return nullptr;
    Value* x = dequantised(operand(*matmul, "self"), operand(*factor->producer, "self"));
    const QuantWeight weight = find_quant_weight(operand(*matmul, "other"));
    if (x == nullptr || x->type.dtype != DType::Float32 || weight.matrix == nullptr ||
        weight.matrix->constant->dims.size() != 2)
      return nullptr;
    ask_for_sizes(*x, product, graph);
    if (product.uses.size() != 1) return nullptr;
    Node* last = &node;
    Value* bias = added_to(node, graph);
    const bool has_bias =
        bias && bias->constant->dims == std::vector{weight.matrix->constant->dims[1]} && is_own(bias, weight.matrix);
    if (!has_bias) bias = nullptr;
    if (bias != nullptr) last = node.output(0)->uses[0].user;
    const Layer* layer = find_layer(weight, scale, factor->producer->name, bias);
    if (layer == nullptr) return nullptr;
    put(graph, "quant_linear", *matmul, *last, x, weight, *layer, bias);
    return last;
  }

  Node* replace_conv(Graph& graph, Node& node, const Sum& found, const Value* factor, double scale) {
    const Node& conv = *found.product->producer;
    Value* x = dequantised(operand(conv, "input"), operand(*factor->producer, "self"));
    const QuantWeight weight = find_quant_weight(operand(conv, "weight"));
    if (x == nullptr || x->type.dtype != DType::Float32 || weight.matrix == nullptr ||
        layers_.contains(weight.matrix) || found.product->uses.size() != 1)
      return nullptr;
    const std::vector<int64_t>& dims = weight.matrix->constant->dims;
    if (dims.size() != spatial_dims(conv) + 2) return nullptr;
    if (found.bias != nullptr && found.bias->constant->dims[0] != dims[0]) return nullptr;
    Node* last = &node;
    Value* bias = found.bias;
    if (Value* added = bias ? nullptr : added_to(node, graph);
        added && added->uses.size() == 1 && is_per_channel(added->constant->dims, dims[0], dims.size() - 2)) {
      auto tensor = std::make_shared<Tensor>(*added->constant);
      tensor->dims = {dims[0]};
      bias = root_.add_initializer(added->name, tensor);
      bias->trainable = added->trainable;
      last = node.output(0)->uses[0].user;
    }
    const Layer* layer = find_layer(weight, scale, factor->producer->name, bias);
    Node* made = put(graph, "quant_" + std::string(conv.op.view()), conv, *last, x, weight, *layer, bias);
    for (const Attribute& attribute : conv.attributes) {
      if (!attribute.value.get<Operand>()) made->attributes.push_back(attribute);
    }
    if (found.bias != nullptr) made->attributes.push_back({"floor_bias", true, AttrType::None, {}, {}});
    return last;
  }

  /// The scale, out of a node of that name, and the zero point of a weight; null where it has others already.
  const Layer* find_layer(const QuantWeight& weight, double scale, std::string_view scaled_in, const Value* bias) {
    const Key key{scale, weight.zero_point, bias};
    const auto [layer, fresh] = layers_.try_emplace(weight.matrix, Layer{key});
    if (fresh) {
      const std::string base = base_of(weight.matrix->name);
      const TensorPtr number = make_scalar(DType::Float32, scale);
      note_made_of_number(number, scaled_in, scale);
      layer->second.scale = root_.add_initializer(base + "scale", number);
      layer->second.zero_point = root_.add_initializer(
          base + "zero_point", make_scalar(weight.matrix->constant->dtype, static_cast<double>(weight.zero_point)));
    }
    return layer->second.key == key ? &layer->second : nullptr;
  }

  /// Puts the layer in the place of its last node.
  static Node* put(Graph& graph, std::string_view op, const Node& product, Node& last, Value* x,
                   const QuantWeight& weight, const Layer& layer, Value* bias) {
    Node* made = graph.add_node("tonnx", op, &last);
    made->name = product.name;
    add_operand(*made, "input", x);
    add_operand(*made, "weight", weight.matrix);
    add_operand(*made, "scale", layer.scale);
    add_operand(*made, "zero_point", layer.zero_point);
    if (bias != nullptr) add_operand(*made, "bias", bias);
    graph.move_output(last.output(0), made, 0);
    last.resize_outputs(0);
    return made;
  }

  /// Sizes that are asked of a product, as integers, are asked of its input.
  static void ask_for_sizes(Value& x, const Value& product, Graph& graph) {
    const std::vector<Use> uses = product.uses;
    for (const Use& use : uses) {
      if (!is_aten(use.user, "to", "dtype") || use.user->graph != &graph) continue;
      Value* whole = use.user->output(0);
      const std::vector<Use> questions = whole->uses;
      for (const Use& question : questions) {
        const int64_t* dim = is_aten(question.user, "sym_size", "int") ? find_int(*question.user, "dim") : nullptr;
        if (dim && *dim >= 0 && *dim + 1 < x.type.rank().value_or(0)) question.user->set_input(0, &x);
      }
      if (whole->uses.empty()) graph.erase(use.user);
    }
  }

  /// Whether a bias is that of one layer only, which then has it as its own.
  bool is_own(const Value* bias, const Value* matrix) {
    const bool is_added = std::all_of(bias->uses.begin(), bias->uses.end(), [](const Use& use) {
      return use.user && (is_aten(use.user, "add", "Tensor") || use.user->op == "quant_linear");
    });
    return is_added && owner_of_.try_emplace(bias, matrix).first->second == matrix;
  }

  /// The constant that the only user of a result adds to it.
  static Value* added_to(const Node& node, const Graph& graph) {
    const Value* result = node.output(0);
    const Node* sum = result->uses.size() == 1 ? result->uses[0].user : nullptr;
    Value* other = sum && sum->graph == &graph ? other_of(sum, "add", result) : nullptr;
    return other && other->constant ? other : nullptr;
  }

  Graph& root_;                                    // where constants are
  std::map<const Value*, Layer> layers_;           // one for each weight
  std::map<const Value*, const Value*> owner_of_;  // the weight beside each bias
};

}  // namespace

void recognise_quant_layers(Graph& graph) { QuantLayers(graph).run(graph); }

}  // namespace tonnx
