// eliminate_identity.cpp - nodes that give what they are given go away.
#include <algorithm>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

/// Relu in front of Clip to what is not negative
bool skip_relu(Node& node, Rewriter& rewriter) {
  const Node* relu = is_onnx(node, kClip) ? producer_of(node.input(0), kRelu) : nullptr;
  const auto min = relu ? float_of(node, "min") : std::nullopt;
  if (!min || *min < 0 || only_user(node.input(0)) == nullptr || relu->input(0) == nullptr) return false;
  rewriter.set_input(node, 0, relu->input(0));
  return true;
}

/// A Dropout that changes nothing now, and does while the model is trained.
bool acts_in_training(const Node& node) {
  static const Symbol kDropout("Dropout");
  return is_onnx(node, kDropout) && (node.input(1) == nullptr || uniform_value(node.input(1)) != 0.0);
}

}  // namespace

bool eliminate_identity(Node& node, Rewriter& rewriter) {
  if (!node.domain.empty() || !is_used(node.output(0))) return false;
  const OnnxOpEntry* entry = find_onnx_op({}, node.op.view());
  if (entry == nullptr || entry->op->same == nullptr || has_references(node)) return false;
  if (rewriter.is_for_training() && acts_in_training(node)) return false;
  if (std::any_of(node.outputs().begin() + 1, node.outputs().end(), is_used)) return false;
  Value* output = node.output(0);
  Value* same = entry->op->same(node);
  if (same == nullptr || same == output) return skip_relu(node, rewriter);
  // a weight that does nothing yet, for nobody has trained it, is there to be trained
  if (std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
        return input != nullptr && input != same && rewriter.keeps_weight(*input);
      }))
    return false;
  const size_t uses = output->uses.size();
  return rewriter.replace(output, same) || output->uses.size() < uses;
}

}  // namespace tonnx
