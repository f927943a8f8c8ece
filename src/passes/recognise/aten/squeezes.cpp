// squeezes.cpp - aten: a dimension that a branch takes away where its size is 1 is squeezed, as PyTorch means it.
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

const GraphPtr* branch_of(const Node& node, std::string_view name) {
  const Attribute* found = node.find_attribute(name);
  return found ? found->value.get<GraphPtr>() : nullptr;
}

/// The size that a condition compares with 1, and whether it asks that it is; null where it asks something else.
struct SizeTest {
  const Value* size;
  bool is_equal;
};
SizeTest size_test(const Value* condition) {
  const Node* test = condition && condition->type.kind == Type::Kind::Bool ? condition->producer : nullptr;
  const bool is_equal = test && test->op == "eq", is_other = test && test->op == "ne";
  if (test == nullptr || test->domain != "_operator" || (!is_equal && !is_other)) return {nullptr, false};
  for (const auto& [size, one] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
    const int64_t* i = find_int(*test, one);
    if (i != nullptr && *i == 1 && operand(*test, size) != nullptr) return {operand(*test, size), is_equal};
  }
  return {nullptr, false};
}

bool is_size_of(const Value& size, const Value& x, int64_t dim) {
  const Node* node = size.producer;
  const int64_t* at = is_aten(node, "sym_size", "int") ? find_int(*node, "dim") : nullptr;
  if (at != nullptr && *at == dim && operand(*node, "self") == &x) return true;
  const bool is_known = size.known_ints && size.known_ints->size() == 1 && x.type.shape && dim >= 0 &&
                        dim < static_cast<int64_t>(x.type.shape->size());
  return is_known && size.known_ints->front() == (*x.type.shape)[static_cast<size_t>(dim)];
}

/// Where every result is squeeze(x, d) in the one branch and x in the other, and d is the dimension that is asked for:
/// the nodes that squeeze.
std::vector<const Node*> find_squeezes(const Node& node) {
  const SizeTest test = size_test(node.input(0));
  const GraphPtr *yes = branch_of(node, test.is_equal ? "then_branch" : "else_branch"),
                 *no = branch_of(node, test.is_equal ? "else_branch" : "then_branch");
  if (test.size == nullptr || yes == nullptr || no == nullptr || (*no)->node_count() != 0) return {};
  std::vector<const Node*> found;
  for (size_t i = 0; i < (*yes)->outputs().size(); ++i) {
    const Node* squeeze = (*yes)->outputs()[i]->producer;
    const Value* x = (*no)->outputs()[i];
    const int64_t* dim = is_aten(squeeze, "squeeze", "dim") ? find_int(*squeeze, "dim") : nullptr;
    if (dim == nullptr || operand(*squeeze, "self") != x || !is_size_of(*test.size, *x, *dim)) return {};
    found.push_back(squeeze);
  }
  return found;
}

}  // namespace

void recognise_squeezes(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_squeezes(*subgraph);
    const bool is_cond = node->domain == "tonnx" && node->op == "cond";
    const std::vector<const Node*> found = is_cond ? find_squeezes(*node) : std::vector<const Node*>{};
    if (!found.empty() && found.size() == node->outputs().size()) {
      for (size_t i = 0; i < found.size(); ++i) {
        Node* squeeze = graph.add_node("aten", "squeeze", node);
        squeeze->overload = "dim";
        squeeze->name = node->name;
        squeeze->metadata = node->metadata;
        add_operand(*squeeze, "self", operand(*found[i], "self"));
        squeeze->attributes.push_back(*found[i]->find_attribute("dim"));
        graph.move_output(node->output(i), squeeze, 0);
      }
      node->resize_outputs(0);
      graph.erase(node);
    }
    node = next;
  }
}

}  // namespace tonnx
