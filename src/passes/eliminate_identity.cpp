// eliminate_identity.cpp - nodes that give what they are given go away.
#include <algorithm>

#include "passes/simplify_passes.h"

namespace tonnx {
namespace {

const Symbol kIdentity("Identity");

/// The input that a node gives on as it is; null where it does more.
Value* find_same(const Node& node) {
  // 1. Identity
  if (is_onnx(node, kIdentity)) return node.input(0);
  return nullptr;
}

}  // namespace

bool eliminate_identity(Node& node, Rewriter& rewriter) {
  if (node.outputs().empty() || node.output(0) == nullptr || node.output(0)->uses.empty()) return false;
  Value* same = find_same(node);
  if (same == nullptr) return false;
  const size_t uses = node.output(0)->uses.size();
  Value* output = node.output(0);
  return rewriter.replace(output, same) || output->uses.size() < uses;
}

}  // namespace tonnx
