// masked_fill.cpp - aten: recognises sums that only fill in -inf.
#include <unordered_map>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// where(condition, 0.0, -inf), or the other way round: whether the condition says what is filled.
std::optional<bool> says_filled(const Node* node) {
  if (!is_aten(node, "where", "Scalar") || operand(*node, "condition") == nullptr) return std::nullopt;
  const auto chosen = number_of(*node, "self"), other = number_of(*node, "other");
  if (chosen == 0.0 && other == -HUGE_VAL) return false;
  if (chosen == -HUGE_VAL && other == 0.0) return true;
  return std::nullopt;
}

class MaskedFill {
 public:
  explicit MaskedFill(Graph& graph) : graph_(graph) {}

  /// 1. x + where(condition, 0.0, -inf): x.masked_fill(~condition, -inf), which keeps the type of x
  bool replace(Node& sum) {
    if (!is_aten(sum, "add", "Tensor") || sum.find_attribute("alpha")) return false;
    Value *x = operand(sum, "self"), *choice = operand(sum, "other");
    if (x == nullptr || choice == nullptr) return false;
    if (!says_filled(choice->producer)) std::swap(x, choice);
    const auto filled = says_filled(choice->producer);
    const auto &from = x->type.shape, &to = sum.output(0)->type.shape;
    if (!filled || choice->producer->graph != &graph_ || !from || !to || !(*from == *to)) return false;
    Node* fill = graph_.add_node("aten", "masked_fill", &sum);
    fill->overload = "Scalar";
    fill->name = sum.name;
    fill->metadata = sum.metadata;
    add_operand(*fill, "self", x);
    add_operand(*fill, "mask", *filled ? operand(*choice->producer, "condition") : inverted(*choice->producer));
    fill->attributes.push_back({"value", -HUGE_VAL, AttrType::None, {}, {}});
    graph_.move_output(sum.output(0), fill, 0);
    sum.resize_outputs(0);
    return true;
  }

 private:
  /// What the condition of a choice leaves out; one for all sums with it.
  Value* inverted(Node& choice) {
    Value*& made = inverted_[&choice];
    if (made == nullptr) {
      Value* condition = operand(choice, "condition");
      Node* inversion = graph_.add_node("aten", "bitwise_not", &choice);
      inversion->name = choice.name;
      add_operand(*inversion, "self", condition);
      made = graph_.add_output_to(inversion, graph_.unique_name(condition->name), condition->type);
    }
    return made;
  }

  Graph& graph_;
  std::unordered_map<const Node*, Value*> inverted_;
};

}  // namespace

void recognise_masked_fill(Graph& graph) {
  MaskedFill rewriter(graph);
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_masked_fill(*subgraph);
    if (rewriter.replace(*node)) graph.erase(node);
    node = next;
  }
}

}  // namespace tonnx
