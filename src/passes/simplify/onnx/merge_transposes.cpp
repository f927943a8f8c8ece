// merge_transposes.cpp - a Transpose of a Transpose is one, or nothing.
#include "passes/pass_table.h"
#include "passes/simplify/onnx/transposes.h"

namespace tonnx {

/// 1. Transpose of a Transpose
bool merge_transposes(Node& node, Rewriter& rewriter) {
  const auto outer = perm_of(node);
  if (!outer) return false;
  const Node* before = node.input(0)->producer;
  const auto inner = before ? perm_of(*before) : std::nullopt;
  if (!inner || inner->size() != outer->size()) return false;
  const Perm both = combined(*inner, *outer);
  if (is_identity(both)) return rewriter.replace(node.output(0), before->input(0));
  rewriter.set_input(node, 0, before->input(0));
  node.set_attribute("perm", both, AttrType::Ints);
  return true;
}

}  // namespace tonnx
