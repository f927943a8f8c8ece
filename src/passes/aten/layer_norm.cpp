// layer_norm.cpp - aten: recognises normalised layers that exporters write out as means and quotients.
#include "passes/aten/match.h"
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
};

/// (x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + eps).
std::optional<Normalised> find_normalised(const Node& node, const Graph& graph) {
  if (!is_aten(&node, "div", "Tensor")) return std::nullopt;
  Value* x = centred(operand(node, "self"), graph);
  const Node* root = x ? made_for_one(operand(node, "other"), graph) : nullptr;
  const Node* sum = is_aten(root, "sqrt") ? made_for_one(operand(*root, "self"), graph) : nullptr;
  const auto eps =
      is_aten(sum, "add", "Scalar") && !sum->find_attribute("alpha") ? number_of(*sum, "other") : std::nullopt;
  const Node* square = eps ? made_for_one(mean_of(made_for_one(operand(*sum, "self"), graph)), graph) : nullptr;
  if (square == nullptr || centred(squared(square), graph) != x) return std::nullopt;
  return Normalised{x, *eps};
}

/// The constant of that many elements with which the only user of a value combines it; null where there is none.
Value* combined(const Value* value, const char* op, int64_t count, const Graph& graph) {
  const Node* user = value->uses.size() == 1 ? value->uses[0].user : nullptr;
  if (!is_aten(user, op, "Tensor") || user->graph != &graph || user->find_attribute("alpha")) return nullptr;
  Value *a = operand(*user, "self"), *b = operand(*user, "other");
  Value* other = a == value ? b : a;
  return other && other->constant && other->constant->dims == std::vector<int64_t>{count} ? other : nullptr;
}

}  // namespace

void recognise_aten_layer_norm(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_aten_layer_norm(*subgraph);
    const auto found = find_normalised(*node, graph);
    const auto size = found ? last_size(found->of) : std::nullopt;
    if (size) {
      Node* last = node;
      Value* weight = combined(last->output(0), "mul", *size, graph);
      if (weight != nullptr) last = last->output(0)->uses[0].user;
      Value* bias = weight ? combined(last->output(0), "add", *size, graph) : nullptr;
      if (bias != nullptr) last = last->output(0)->uses[0].user;
      Node* norm = graph.add_node("aten", "layer_norm", last);
      norm->name = node->name;
      add_operand(*norm, "input", found->of);
      norm->attributes.push_back({"normalized_shape", std::vector<int64_t>{*size}, AttrType::None, {}, {}});
      if (weight) add_operand(*norm, "weight", weight);
      if (bias) add_operand(*norm, "bias", bias);
      norm->attributes.push_back({"eps", found->eps, AttrType::None, {}, {}});
      graph.move_output(last->output(0), norm, 0);
      last->resize_outputs(0);
      next = last->next;
      graph.erase(last);
    }
    node = next;
  }
}

}  // namespace tonnx
