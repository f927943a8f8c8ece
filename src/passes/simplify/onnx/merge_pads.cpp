// merge_pads.cpp - a Pad of a Pad is one.
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

struct Pads {
  std::vector<int64_t> amounts;  // of all axes: those in front, then those behind
  double value = 0;
};

/// What a Pad with constants adds; nothing where the numbers are not known.
std::optional<Pads> pads_of(const Node& node) {
  const Value* x = node.input(0);
  const auto given = ints_of(node, "pads");
  if (x == nullptr || node.output(0) == nullptr || !x->type.shape || !given) return std::nullopt;
  if (text_of(node, "mode").value_or("constant") != "constant") return std::nullopt;
  const auto rank = static_cast<int64_t>(x->type.shape->size());
  std::vector<int64_t> axes;
  if (has(node, "axes")) {
    const auto some = ints_of(node, "axes");
    if (!some || !axes_from_front(*some, rank)) return std::nullopt;
    for (const int64_t axis : *some) axes.push_back(*from_front(axis, rank));
  } else {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (given->size() != 2 * axes.size()) return std::nullopt;
  Pads pads;
  pads.amounts.resize(static_cast<size_t>(2 * rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    pads.amounts[static_cast<size_t>(axes[i])] = (*given)[i];
    pads.amounts[static_cast<size_t>(rank + axes[i])] = (*given)[axes.size() + i];
  }
  constexpr double kExact = 1LL << 53;
  const char* name = node.find_attribute("value") ? "value" : "constant_value";
  if (has(node, name)) {
    const auto value = float_of(node, name);
    if (!value || !(*value<kExact&& * value> - kExact)) return std::nullopt;
    pads.value = *value;
  }
  return pads;
}

}  // namespace

/// 1. Pad with the same constant as the Pad in front of it, which nobody else uses
bool merge_pads(Node& node, Rewriter& rewriter) {
  const Node* before = is_onnx(node, kPad) ? producer_of(node.input(0), kPad) : nullptr;
  if (before == nullptr || only_user(node.input(0)) == nullptr) return false;
  const auto inner = pads_of(*before);
  auto outer = pads_of(node);
  if (!inner || !outer || inner->value != outer->value || inner->amounts.size() != outer->amounts.size()) return false;
  for (size_t i = 0; i < inner->amounts.size(); ++i) {
    int64_t sum = 0;
    // what the first one has cut away, the second one does not bring back
    if (inner->amounts[i] < 0 || __builtin_add_overflow(inner->amounts[i], outer->amounts[i], &sum) || sum < 0)
      return false;
    outer->amounts[i] = sum;
  }
  Value *x = before->input(0), *y = node.output(0);
  std::vector<Value*> inputs{x, rewriter.ints(*node.graph, outer->amounts, "pads")};
  if (outer->value != 0) {
    inputs.push_back(rewriter.constant(*node.graph, make_scalar(x->type.dtype, outer->value), "pad_value"));
  }
  Value* made = rewriter.add(node, {"Pad", std::move(inputs)}, y->name);
  return made != nullptr && rewriter.replace(y, made);
}

}  // namespace tonnx
