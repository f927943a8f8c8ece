// quant_linear.cpp - aten: recognises layers whose input is quantised as it comes, by its own range.
#include <algorithm>
#include <map>
#include <tuple>

#include "passes/aten/match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr double kSteps = 255;

bool is_clamp(const Node* node, std::optional<double> low, std::optional<double> high) {
  return is_aten(node, "clamp") && number_of(*node, "min") == low && number_of(*node, "max") == high;
}

const Node* maker(const Value* value) { return value ? value->producer : nullptr; }

/// The number of a tensor's two ends that a value is, with zero between them: clamp(aminmax(x)[0], max=0).
const Node* find_end(const Value* value, size_t which) {
  const Node* node = maker(value);
  const bool is_end = which == 0 ? is_clamp(node, std::nullopt, 0.0) : is_clamp(node, 0.0, std::nullopt);
  const Value* end = is_end ? operand(*node, "self") : nullptr;
  return is_aten(maker(end), "aminmax") && end->output_index == which ? end->producer : nullptr;
}

/// What is quantised by a step: (max(x, 0) - min(x, 0)) / 255, and 1 for a tensor of zeros; null for other values.
struct Range {
  Value* of = nullptr;
  const Value* low = nullptr;
};
Range find_range(const Value* step) {
  const Node* filled = maker(step);
  if (!is_aten(filled, "masked_fill", "Scalar") || number_of(*filled, "value") != 1.0) return {};
  const Value* quotient = operand(*filled, "self");
  const Node* is_zero = maker(operand(*filled, "mask"));
  if (!is_aten(is_zero, "eq", "Scalar") || operand(*is_zero, "self") != quotient || number_of(*is_zero, "other") != 0.0)
    return {};
  const Node* division = maker(quotient);
  if (!is_aten(division, "div", "Scalar") || number_of(*division, "other") != kSteps) return {};
  const Node* difference = maker(operand(*division, "self"));
  if (!is_aten(difference, "sub", "Tensor") || difference->find_attribute("alpha")) return {};
  const Value* low = operand(*difference, "other");
  const Node* ends = find_end(operand(*difference, "self"), 1);
  if (ends == nullptr || find_end(low, 0) != ends || ends->inputs().size() != 1 || ends->attributes.size() != 1)
    return {};
  return {operand(*ends, "self"), low};
}

/// round(a / step): a.
const Value* rounded(const Value* value, const Value* step) {
  const Node* node = maker(value);
  const Node* quotient = is_aten(node, "round") ? maker(operand(*node, "self")) : nullptr;
  const bool fits = is_aten(quotient, "div", "Tensor") && operand(*quotient, "other") == step;
  return fits ? operand(*quotient, "self") : nullptr;
}

/// round(-low / step) between 0 and 255.
bool is_zero_point(const Value* value, const Value* low, const Value* step) {
  const Node* node = maker(value);
  if (is_aten(node, "to", "dtype")) node = maker(operand(*node, "self"));
  if (!is_clamp(node, 0, kSteps)) return false;
  const Node* negated = maker(rounded(operand(*node, "self"), step));
  return is_aten(negated, "neg") && operand(*negated, "self") == low;
}

/// round(x / step) + zero point, between 0 and 255, less the zero point: x.
Value* dequantised(const Value* value, const Value* step) {
  const Range range = find_range(step);
  const Node* difference = maker(value);
  if (range.of == nullptr || !is_aten(difference, "sub", "Tensor") || difference->find_attribute("alpha"))
    return nullptr;
  const Value* zero_point = operand(*difference, "other");
  const Node* clamped = maker(operand(*difference, "self"));
  if (!is_zero_point(zero_point, range.low, step) || !is_clamp(clamped, 0, kSteps)) return nullptr;
  const Node* sum = maker(operand(*clamped, "self"));
  if (!is_aten(sum, "add", "Tensor") || sum->find_attribute("alpha") || operand(*sum, "other") != zero_point)
    return nullptr;
  return rounded(operand(*sum, "self"), step) == range.of ? range.of : nullptr;
}

/// A matrix of 8-bit integers as floats, less a number.
struct QuantWeight {
  Value* matrix = nullptr;
  int64_t zero_point = 0;
};
QuantWeight find_weight(const Value* value) {
  const Node* node = maker(value);
  QuantWeight result;
  const bool is_sum = is_aten(node, "add", "Scalar");
  if ((is_sum || is_aten(node, "sub", "Scalar")) && !node->find_attribute("alpha")) {
    const int64_t* number = find_int(*node, "other");
    if (number == nullptr || *number < -kSteps || *number > kSteps) return {};
    result.zero_point = is_sum ? -*number : *number;
    node = maker(operand(*node, "self"));
  }
  Value* matrix = is_aten(node, "to", "dtype") ? operand(*node, "self") : nullptr;
  const bool fits = matrix && matrix->constant && matrix->constant->dims.size() == 2 &&
                    (matrix->constant->dtype == DType::UInt8 || matrix->constant->dtype == DType::Int8);
  if (!fits) return {};
  result.matrix = matrix;
  return result;
}

class QuantLinear {
 public:
  explicit QuantLinear(Graph& root) : root_(root) {}

  void run(Graph& graph) {
    for (Node* node = graph.first(); node != nullptr;) {
      Node* next = node->next;
      for (const GraphPtr& subgraph : subgraphs_of(*node)) run(*subgraph);
      Node* last = replace(graph, *node);
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

  /// 1. (quantised x) @ (weight - zero point) * (step * scale), and the sum with a bias behind it. Returns the node
  /// that nobody uses any more.
  Node* replace(Graph& graph, Node& node) {
    if (!is_aten(node, "mul", "Tensor")) return nullptr;
    Value *product = operand(node, "self"), *factor = operand(node, "other");
    if (!is_aten(maker(product), "matmul")) std::swap(product, factor);
    const Node* matmul = maker(product);
    const Node* scaling = maker(factor);
    const auto scale = is_aten(scaling, "mul", "Scalar") ? number_of(*scaling, "other") : std::nullopt;
    if (!is_aten(matmul, "matmul") || matmul->graph != &graph || !scale) return nullptr;
    Value* x = dequantised(operand(*matmul, "self"), operand(*scaling, "self"));
    const QuantWeight weight = find_weight(operand(*matmul, "other"));
    if (x == nullptr || x->type.dtype != DType::Float32 || weight.matrix == nullptr) return nullptr;
    ask_for_sizes(*x, *product, graph);
    if (product->uses.size() != 1) return nullptr;
    Node* last = &node;
    Value* bias = added_bias(node, weight.matrix->constant->dims[1], graph);
    if (bias != nullptr && !is_own(bias, weight.matrix)) bias = nullptr;
    if (bias != nullptr) last = node.output(0)->uses[0].user;
    const Key key{*scale, weight.zero_point, bias};
    const auto [layer, fresh] = layers_.try_emplace(weight.matrix, Layer{key, nullptr, nullptr});
    if (layer->second.key != key) return nullptr;
    if (fresh) {
      const std::string& name = weight.matrix->name;
      layer->second.scale = root_.add_initializer(name + "_scale", make_scalar(DType::Float32, *scale));
      layer->second.zero_point = root_.add_initializer(
          name + "_zero_point", make_scalar(weight.matrix->constant->dtype, static_cast<double>(weight.zero_point)));
    }
    Node* linear = graph.add_node("tonnx", "quant_linear", last);
    linear->name = matmul->name;
    add_operand(*linear, "input", x);
    add_operand(*linear, "weight", weight.matrix);
    add_operand(*linear, "scale", layer->second.scale);
    add_operand(*linear, "zero_point", layer->second.zero_point);
    if (bias != nullptr) add_operand(*linear, "bias", bias);
    graph.move_output(last->output(0), linear, 0);
    last->resize_outputs(0);
    return last;
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
      return use.user && (is_aten(use.user, "add", "Tensor") || use.user->op == Symbol("quant_linear"));
    });
    return is_added && owner_of_.try_emplace(bias, matrix).first->second == matrix;
  }

  static Value* added_bias(const Node& node, int64_t count, const Graph& graph) {
    const Value* result = node.output(0);
    const Node* sum = result->uses.size() == 1 ? result->uses[0].user : nullptr;
    if (!is_aten(sum, "add", "Tensor") || sum->graph != &graph || sum->find_attribute("alpha")) return nullptr;
    Value* other = operand(*sum, "self") == result ? operand(*sum, "other") : operand(*sum, "self");
    return other && other->constant && other->constant->dims == std::vector<int64_t>{count} ? other : nullptr;
  }

  struct Layer {
    Key key;
    Value* scale;
    Value* zero_point;
  };
  Graph& root_;                                    // where constants are
  std::map<const Value*, Layer> layers_;           // one for each weight
  std::map<const Value*, const Value*> owner_of_;  // the weight beside each bias
};

}  // namespace

void recognise_quant_linear(Graph& graph) { QuantLinear(graph).run(graph); }

}  // namespace tonnx
