// activations.cpp - aten: recognises activations that exporters write out as products and sums.
#include <array>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr double kRootTwo = 1.4142135623730951;

struct Activation {
  const char* op;
  Value* of;
};

/// `x / number`, or `x * (1 / number)`: x.
Value* quotient(const Node* node, double number) {
  if (node == nullptr) return nullptr;
  const bool is_one = (is_aten(node, "div", "Scalar") && is_number(*node, "other", number)) ||
                      (is_aten(node, "mul", "Scalar") && is_number(*node, "other", 1 / number));
  return is_one ? operand(*node, "self") : nullptr;
}

/// `x + number`: x.
Value* sum(const Node* node, double number) {
  const bool is_one = is_aten(node, "add", "Scalar") && is_number(*node, "other", number);
  return is_one && !node->find_attribute("alpha") ? operand(*node, "self") : nullptr;
}

/// relu6(x + 3): x.
Value* hard_step(const Node* node, const Graph& graph) {
  return is_aten(node, "relu6") ? sum(single_use_producer(operand(*node, "self"), graph), 3) : nullptr;
}

/// 1 + erf(x / sqrt(2)): x.
Value* normal_step(const Node* node, const Graph& graph) {
  const Node* erf = single_use_producer(sum(node, 1), graph);
  return is_aten(erf, "erf") ? quotient(single_use_producer(operand(*erf, "self"), graph), kRootTwo) : nullptr;
}

/// c0 + c1 x + c2 x^2 + c3 x^3.
using Cubic = std::array<double, 4>;
constexpr int kDeepestTerm = 8;  // so many nodes inside one another are looked at

std::optional<Cubic> product(const std::optional<Cubic>& a, const std::optional<Cubic>& b) {
  if (!a || !b) return std::nullopt;
  Cubic result{};
  for (size_t i = 0; i < a->size(); ++i) {
    for (size_t j = 0; j < b->size(); ++j) {
      const double term = (*a)[i] * (*b)[j];
      if (i + j < result.size()) result[i + j] += term;
      if (i + j >= result.size() && term != 0) return std::nullopt;
    }
  }
  return result;
}

/// The value as a polynomial of x; nothing where it is none.
std::optional<Cubic> cubic_of(const Value* value, const Value* x, int depth = 0) {
  if (value == x) return Cubic{0, 1, 0, 0};
  const Node* node = value && depth < kDeepestTerm ? value->producer : nullptr;
  if (node == nullptr) return std::nullopt;
  const auto self = [&] { return cubic_of(operand(*node, "self"), x, depth + 1); };
  const auto other = [&] { return cubic_of(operand(*node, "other"), x, depth + 1); };
  const auto number = number_of(*node, "other");
  if (is_aten(node, "mul", "Tensor")) return product(self(), other());
  if (is_aten(node, "mul", "Scalar") && number) return product(self(), Cubic{*number, 0, 0, 0});
  if (is_aten(node, "div", "Scalar") && number && *number != 0) return product(self(), Cubic{1 / *number, 0, 0, 0});
  if (is_aten(node, "square")) return product(self(), self());
  if (is_aten(node, "pow", "Tensor_Scalar")) {
    const auto of = self();
    const auto power = number_of(*node, "exponent");
    if (power == 2.0) return product(of, of);
    return power == 3.0 ? product(product(of, of), of) : std::nullopt;
  }
  const bool is_tensor = is_aten(node, "add", "Tensor");
  if ((!is_tensor && !is_aten(node, "add", "Scalar")) || node->find_attribute("alpha")) return std::nullopt;
  auto result = self();
  const auto more = is_tensor ? other() : number ? std::optional(Cubic{*number, 0, 0, 0}) : std::nullopt;
  if (!result || !more) return std::nullopt;
  for (size_t i = 0; i < result->size(); ++i) (*result)[i] += (*more)[i];
  return result;
}

/// Whether the node is 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)).
bool is_tanh_step(const Node* node, const Value* x, const Graph& graph) {
  constexpr double kRoot = 0.7978845608028654, kThird = 0.044715;
  const Node* tanh = single_use_producer(sum(node, 1), graph);
  const auto cubic = is_aten(tanh, "tanh") && x ? cubic_of(operand(*tanh, "self"), x) : std::nullopt;
  const auto is_near = [](double a, double b) { return std::abs(a - b) <= 5e-4 * std::abs(b); };
  return cubic && (*cubic)[0] == 0 && (*cubic)[2] == 0 && is_near((*cubic)[1], kRoot) &&
         is_near((*cubic)[3], kRoot * kThird);
}

constexpr const char* kTanhGelu = "gelu, by tanh";

/// The activation that x / 2 times the node is.
const char* find_gelu_step(const Node* node, const Value* x, const Graph& graph) {
  if (node == nullptr || x == nullptr) return nullptr;
  if (normal_step(node, graph) == x) return "gelu";
  return is_tanh_step(node, x, graph) ? kTanhGelu : nullptr;
}

/// The activation that x * factor is.
const char* gated(const Value* x, const Value* factor, const Graph& graph) {
  const Node* gate = single_use_producer(factor, graph);
  if (gate == nullptr) return nullptr;
  const Value* of = operand(*gate, "self");
  if (of == x && is_aten(gate, "sigmoid")) return "silu";
  if (of == x && is_aten(gate, "hardsigmoid")) return "hardswish";
  if (hard_step(single_use_producer(quotient(gate, 6), graph), graph) == x) return "hardswish";
  if (const char* gelu = find_gelu_step(single_use_producer(quotient(gate, 2), graph), x, graph)) return gelu;
  const Node* inner = is_aten(gate, "tanh") ? single_use_producer(of, graph) : nullptr;
  const bool is_mish = is_aten(inner, "softplus") && operand(*inner, "self") == x && inner->attributes.size() == 1;
  return is_mish ? "mish" : nullptr;
}

/// Calls `found` with the two factors of a product, in either order, until it gives something.
template <class F>
std::optional<Activation> of_factors(const Node* node, F found) {
  if (!is_aten(node, "mul", "Tensor")) return std::nullopt;
  Value *a = operand(*node, "self"), *b = operand(*node, "other");
  if (a == nullptr || b == nullptr) return std::nullopt;
  if (const char* op = found(a, b)) return Activation{op, a};
  if (const char* op = found(b, a)) return Activation{op, b};
  return std::nullopt;
}

std::optional<Activation> find_activation(const Node& node, const Graph& graph) {
  // 1. x * sigmoid(x), x * hardsigmoid(x), x * (relu6(x + 3) / 6), x * ((1 + erf(x / sqrt(2))) / 2), x *
  // tanh(softplus(x)); the error function may be the hyperbolic tangent that comes near to it
  if (const auto whole = of_factors(&node, [&](Value* x, Value* y) { return gated(x, y, graph); })) return whole;
  // 2. (x / 2) * (1 + erf(x / sqrt(2)))
  std::optional<Activation> gelu;
  of_factors(&node, [&](Value* half, Value* step) -> const char* {
    Value* x = quotient(single_use_producer(half, graph), 2);
    const char* op = find_gelu_step(single_use_producer(step, graph), x, graph);
    if (op != nullptr) gelu = Activation{op, x};
    return op;
  });
  if (gelu) return gelu;
  // 3. (x * relu6(x + 3)) / 6, (x * (1 + erf(x / sqrt(2)))) / 2
  const Node* product = single_use_producer(quotient(&node, 6), graph);
  const auto hardswish = of_factors(product, [&](Value* x, Value* step) {
    return hard_step(single_use_producer(step, graph), graph) == x ? "hardswish" : nullptr;
  });
  if (hardswish) return hardswish;
  const Node* doubled = single_use_producer(quotient(&node, 2), graph);
  const auto last = of_factors(
      doubled, [&](Value* x, Value* step) { return find_gelu_step(single_use_producer(step, graph), x, graph); });
  if (last) return last;
  // 4. relu6(x + 3) / 6
  Value* x = hard_step(single_use_producer(quotient(&node, 6), graph), graph);
  return x ? std::optional(Activation{"hardsigmoid", x}) : std::nullopt;
}

}  // namespace

void recognise_aten_activations(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_aten_activations(*subgraph);
    if (const auto found = node->outputs().size() == 1 ? find_activation(*node, graph) : std::nullopt) {
      const bool is_by_tanh = found->op == kTanhGelu;
      Node* activation = graph.add_node("aten", is_by_tanh ? "gelu" : found->op, node);
      activation->name = node->name;
      add_operand(*activation, "self", found->of);
      if (is_by_tanh) activation->attributes.push_back({"approximate", std::string("tanh"), AttrType::None, {}, {}});
      graph.move_output(node->output(0), activation, 0);
      node->resize_outputs(0);
      graph.erase(node);
    }
    node = next;
  }
}

}  // namespace tonnx
