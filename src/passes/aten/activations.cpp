// activations.cpp - aten: recognises activations that exporters write out as products and sums.
#include "passes/aten/match.h"
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
  return is_aten(node, "relu6") ? sum(made_for_one(operand(*node, "self"), graph), 3) : nullptr;
}

/// 1 + erf(x / sqrt(2)): x.
Value* normal_step(const Node* node, const Graph& graph) {
  const Node* erf = made_for_one(sum(node, 1), graph);
  return is_aten(erf, "erf") ? quotient(made_for_one(operand(*erf, "self"), graph), kRootTwo) : nullptr;
}

/// The activation that x * factor is.
const char* gated(const Value* x, const Value* factor, const Graph& graph) {
  const Node* gate = made_for_one(factor, graph);
  if (gate == nullptr) return nullptr;
  const Value* of = operand(*gate, "self");
  if (of == x && is_aten(gate, "sigmoid")) return "silu";
  if (of == x && is_aten(gate, "hardsigmoid")) return "hardswish";
  if (hard_step(made_for_one(quotient(gate, 6), graph), graph) == x) return "hardswish";
  if (normal_step(made_for_one(quotient(gate, 2), graph), graph) == x) return "gelu";
  const Node* inner = is_aten(gate, "tanh") ? made_for_one(of, graph) : nullptr;
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
  // tanh(softplus(x))
  if (const auto whole = of_factors(&node, [&](Value* x, Value* y) { return gated(x, y, graph); })) return whole;
  // 2. (x / 2) * (1 + erf(x / sqrt(2)))
  std::optional<Activation> gelu;
  of_factors(&node, [&](Value* half, Value* step) -> const char* {
    Value* x = quotient(made_for_one(half, graph), 2);
    if (x == nullptr || normal_step(made_for_one(step, graph), graph) != x) return nullptr;
    gelu = Activation{"gelu", x};
    return "gelu";
  });
  if (gelu) return gelu;
  // 3. (x * relu6(x + 3)) / 6, (x * (1 + erf(x / sqrt(2)))) / 2
  const Node* product = made_for_one(quotient(&node, 6), graph);
  const auto hardswish = of_factors(product, [&](Value* x, Value* step) {
    return hard_step(made_for_one(step, graph), graph) == x ? "hardswish" : nullptr;
  });
  if (hardswish) return hardswish;
  const Node* doubled = made_for_one(quotient(&node, 2), graph);
  const auto last = of_factors(doubled, [&](Value* x, Value* step) {
    return normal_step(made_for_one(step, graph), graph) == x ? "gelu" : nullptr;
  });
  if (last) return last;
  // 4. relu6(x + 3) / 6
  Value* x = hard_step(made_for_one(quotient(&node, 6), graph), graph);
  return x ? std::optional(Activation{"hardsigmoid", x}) : std::nullopt;
}

}  // namespace

void recognise_aten_activations(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_aten_activations(*subgraph);
    if (const auto found = node->outputs().size() == 1 ? find_activation(*node, graph) : std::nullopt) {
      Node* activation = graph.add_node("aten", found->op, node);
      activation->name = node->name;
      add_operand(*activation, "self", found->of);
      graph.move_output(node->output(0), activation, 0);
      node->resize_outputs(0);
      graph.erase(node);
    }
    node = next;
  }
}

}  // namespace tonnx
