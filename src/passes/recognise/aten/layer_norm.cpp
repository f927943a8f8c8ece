// layer_norm.cpp - aten: recognises normalised layers that exporters write out as means and quotients.
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// The size of the last dimension, where it is known.
std::optional<int64_t> last_size(const Value* x) {
  const auto& shape = x->type.shape;
  return shape && !shape->empty() ? shape->back().constant() : std::nullopt;
}

/// mean(x, -1, keepdim=True): x.
Value* mean_of(const Node* node) {
  Value* x = is_aten(node, "mean", "dim") ? operand(*node, "self") : nullptr;
  if (x == nullptr || !x->type.rank() || node->find_attribute("dtype")) return nullptr;
  const Attribute *dim = node->find_attribute("dim"), *keeps = node->find_attribute("keepdim");
  const auto* dims = dim ? dim->value.get<std::vector<int64_t>>() : nullptr;
  const auto* flag = keeps ? keeps->value.get<bool>() : nullptr;
  const bool is_last =
      dims && dims->size() == 1 && (dims->front() == -1 || dims->front() + 1 == static_cast<int64_t>(*x->type.rank()));
  return is_last && flag && *flag ? x : nullptr;
}

/// x - mean(x): x.
Value* centred(const Value* value, const Graph& graph) {
  const Node* node = value ? value->producer : nullptr;
  if (!is_aten(node, "sub", "Tensor") || node->graph != &graph || node->find_attribute("alpha")) return nullptr;
  Value *x = operand(*node, "self"), *mean = operand(*node, "other");
  return x && mean && mean_of(mean->producer) == x ? x : nullptr;
}

/// value ** 2: value.
Value* squared(const Node* node) {
  if (is_aten(node, "square")) return operand(*node, "self");
  if (is_aten(node, "pow", "Tensor_Scalar") && is_number(*node, "exponent", 2)) return operand(*node, "self");
  if (!is_aten(node, "mul", "Tensor") || operand(*node, "self") != operand(*node, "other")) return nullptr;
  return operand(*node, "self");
}

struct Normalised {
  Value* of;
  double eps;
  bool is_centred = true;  // otherwise only the mean of the squares is made 1
};

/// 1 / sqrt(sum): the sum. The reciprocal may be needed more than once.
const Node* under_root(const Value* value, const Graph& graph) {
  const Node* node = value && value->producer && value->producer->graph == &graph ? value->producer : nullptr;
  if (is_aten(node, "rsqrt")) return single_use_producer(operand(*node, "self"), graph);
  if (is_aten(node, "pow", "Tensor_Scalar") && number_of(*node, "exponent") == -0.5)
    return single_use_producer(operand(*node, "self"), graph);
  const Node* root = is_aten(node, "reciprocal") ? single_use_producer(operand(*node, "self"), graph) : nullptr;
  return is_aten(root, "sqrt") ? single_use_producer(operand(*root, "self"), graph) : nullptr;
}

/// mean(square) + eps: what is squared, and eps.
struct Spread {
  Value* of = nullptr;
  double eps = 0;
};
Spread find_spread(const Node* sum, const Graph& graph) {
  const auto eps =
      is_aten(sum, "add", "Scalar") && !sum->find_attribute("alpha") ? number_of(*sum, "other") : std::nullopt;
  const Node* square =
      eps ? single_use_producer(mean_of(single_use_producer(operand(*sum, "self"), graph)), graph) : nullptr;
  Value* of = square ? squared(square) : nullptr;
  return of ? Spread{of, *eps} : Spread{};
}

/// Calls `found` with both inputs of a product or sum, in either order, until it gives something.
template <class F>
auto of_both(const Node& node, F found) -> decltype(found(nullptr, nullptr)) {
  Value *a = operand(node, "self"), *b = operand(node, "other");
  if (a == nullptr || b == nullptr || node.find_attribute("alpha")) return std::nullopt;
  auto first = found(a, b);
  return first ? first : found(b, a);
}

/// 1. (x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + eps), and x / sqrt(mean(x ** 2) + eps); or a product with the
/// reciprocal of the root.
std::optional<Normalised> find_normalised(const Node& node, const Graph& graph) {
  const auto divided = [&](Value* above, const Node* sum) -> std::optional<Normalised> {
    const Spread spread = find_spread(sum, graph);
    if (spread.of == nullptr) return std::nullopt;
    if (spread.of == above && !centred(above, graph)) return Normalised{above, spread.eps, false};
    Value* x = centred(above, graph);
    if (x == nullptr || centred(spread.of, graph) != x) return std::nullopt;
    return Normalised{x, spread.eps};
  };
  if (is_aten(node, "div", "Tensor")) {
    const Node* root = single_use_producer(operand(node, "other"), graph);
    return is_aten(root, "sqrt") ? divided(operand(node, "self"), single_use_producer(operand(*root, "self"), graph))
                                 : std::nullopt;
  }
  if (!is_aten(node, "mul", "Tensor")) return std::nullopt;
  return of_both(node, [&](Value* above, Value* factor) -> std::optional<Normalised> {
    if (factor == nullptr || factor->uses.size() != 1) return std::nullopt;
    return divided(above, under_root(factor, graph));
  });
}

bool is_vector(const Value* value, int64_t count) {
  return value && value->constant && value->constant->dims == std::vector<int64_t>{count};
}

/// 2. x * r + (bias - mean(x) * r) with r = weight / sqrt(mean((x - mean(x)) ** 2) + eps), as Keras has it.
struct Affine {
  Normalised normalised;
  Value *weight, *bias;
};
std::optional<Affine> find_affine(const Node& node, const Graph& graph) {
  if (!is_aten(node, "add", "Tensor")) return std::nullopt;
  return of_both(node, [&](Value* scaled, Value* shift) -> std::optional<Affine> {
    const Node* product = scaled ? single_use_producer(scaled, graph) : nullptr;
    const Node* difference = shift ? single_use_producer(shift, graph) : nullptr;
    if (!is_aten(product, "mul", "Tensor") || !is_aten(difference, "sub", "Tensor") ||
        difference->find_attribute("alpha"))
      return std::nullopt;
    Value* bias = operand(*difference, "self");
    const Node* moved = single_use_producer(operand(*difference, "other"), graph);
    if (!is_aten(moved, "mul", "Tensor")) return std::nullopt;
    return of_both(*product, [&](Value* x, Value* factor) -> std::optional<Affine> {
      const int64_t size = x ? last_size(x).value_or(-1) : -1;
      const bool is_one = factor && factor->uses.size() == 2 && size >= 0 && is_vector(bias, size);
      const bool is_mean = is_one && of_both(*moved, [&](Value* mean, Value* other) {
                             const bool fits = other == factor && mean && mean_of(mean->producer) == x;
                             return fits ? std::optional(true) : std::nullopt;
                           });
      const Node* scaling = is_mean ? factor->producer : nullptr;
      if (!is_aten(scaling, "mul", "Tensor") || scaling->graph != &graph) return std::nullopt;
      return of_both(*scaling, [&](Value* weight, Value* reciprocal) -> std::optional<Affine> {
        if (!is_vector(weight, size) || reciprocal->uses.size() != 1) return std::nullopt;
        const Spread spread = find_spread(under_root(reciprocal, graph), graph);
        if (spread.of == nullptr || centred(spread.of, graph) != x) return std::nullopt;
        return Affine{{x, spread.eps}, weight, bias};
      });
    });
  });
}

/// The constant of that many elements with which the only user of a value combines it; null where there is none.
Value* combined(const Value* value, const char* op, int64_t count) {
  Value* other = combined_with(value, op);
  return other && other->constant && other->constant->dims == std::vector<int64_t>{count} ? other : nullptr;
}

/// Puts the layer in the place of its last node.
void replace_by_norm(Graph& graph, Node* last, const Normalised& found, Value* weight, Value* bias) {
  Node* norm = graph.add_node("aten", found.is_centred ? "layer_norm" : "rms_norm", last);
  norm->name = last->name;
  add_operand(*norm, "input", found.of);
  norm->attributes.push_back({"normalized_shape", std::vector<int64_t>{*last_size(found.of)}, AttrType::None, {}, {}});
  if (weight) add_operand(*norm, "weight", weight);
  if (bias) add_operand(*norm, "bias", bias);
  norm->attributes.push_back({"eps", found.eps, AttrType::None, {}, {}});
  graph.move_output(last->output(0), norm, 0);
  last->resize_outputs(0);
  graph.erase(last);
}

}  // namespace

void recognise_aten_layer_norm(Graph& graph) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_aten_layer_norm(*subgraph);
    const auto found = find_normalised(*node, graph);
    const auto size = found ? last_size(found->of) : std::nullopt;
    if (size) {
      Node* last = node;
      Value* weight = combined(last->output(0), "mul", *size);
      if (weight != nullptr) last = last->output(0)->uses[0].user;
      Value* bias = weight && found->is_centred ? combined(last->output(0), "add", *size) : nullptr;
      if (bias != nullptr) last = last->output(0)->uses[0].user;
      if (next == last) next = last->next;
      replace_by_norm(graph, last, *found, weight, bias);
      is_changed = true;
    } else if (const auto affine = find_affine(*node, graph)) {
      replace_by_norm(graph, node, affine->normalised, affine->weight, affine->bias);
      is_changed = true;
    }
    node = next;
  }
  if (!is_changed) return;
  find_sources_of_sizes(graph);  // and not of what the layer does not need any more
  remove_unused_nodes(graph);
}

}  // namespace tonnx
