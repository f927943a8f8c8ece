// inline_if.cpp - an If whose condition is known is the nodes of one branch.
#include "base/error.h"
#include "ir/clone.h"
#include "passes/pass_table.h"
#include "passes/passes.h"

namespace tonnx {

bool put_branch_before(Node& node) {
  const Value* condition = node.input(0);
  require(condition != nullptr, "the condition is missing");
  const auto flag = condition->constant ? ints_of(*condition->constant) : std::nullopt;
  if (!flag || flag->size() != 1) return false;
  const Attribute* attribute = node.find_attribute((*flag)[0] != 0 ? "then_branch" : "else_branch");
  const auto* found = attribute ? attribute->value.get<GraphPtr>() : nullptr;
  require(found != nullptr, "the branch that is taken is missing");
  const GraphPtr branch = *found;
  require(branch->inputs().empty() && node.outputs().size() <= branch->outputs().size(),
          "the branch has {} inputs and {} outputs, and the node {} outputs", branch->inputs().size(),
          branch->outputs().size(), node.outputs().size());
  Graph& graph = *node.graph;
  ValueMap map;
  clone_nodes(*branch, graph, &node, map);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (output == nullptr) continue;
    Node* identity = graph.add_node("", "Identity", &node);
    identity->version = node.version;
    identity->set_input(0, copy_of(branch->outputs()[i], map));
    graph.move_output(output, identity, 0);
  }
  return true;
}

bool inline_if(Node& node, Rewriter& rewriter) {
  static const Symbol kIf("If");
  // 1. The condition is known.
  if (!is_onnx(node, kIf)) return false;
  Node* const before = node.previous;
  Graph& graph = *node.graph;
  if (!put_branch_before(node)) return false;
  for (Node* made = before ? before->next : graph.first(); made != &node; made = made->next) rewriter.infer(*made);
  rewriter.erase_unused(&node);
  return true;
}

}  // namespace tonnx
