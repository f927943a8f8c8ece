// merge_reshapes.cpp - chains of Reshape, Flatten, Squeeze and Unsqueeze become one of them, or nothing.
#include <algorithm>
#include <iterator>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

/// A Transpose that moves nothing but axes of size 1.
bool keeps_order(const Node& node) {
  const Value* x = node.input(0);
  if (x == nullptr || !x->type.shape) return false;
  const auto rank = static_cast<int64_t>(x->type.shape->size());
  const auto perm = ints_of(node, "perm");
  if (perm && static_cast<int64_t>(perm->size()) != rank) return false;
  int64_t last = -1;
  for (int64_t i = 0; i < rank; ++i) {
    const auto axis = from_front(perm ? (*perm)[static_cast<size_t>(i)] : rank - 1 - i, rank);
    if (!axis) return false;
    if ((*x->type.shape)[static_cast<size_t>(*axis)].is(1)) continue;
    if (*axis < last) return false;
    last = *axis;
  }
  return true;
}

Shape without_ones(const Shape& shape) {
  Shape result;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(result), [](const Dim& dim) { return !dim.is(1); });
  return result;
}

/// Expand, Gather of one element, and reductions that change values nowhere: only axes of size 1 come or go.
bool changes_ones_only(const Node& node) {
  const Value *x = node.input(0), *y = node.output(0);
  const bool is_reduction = has_trait(node, kReduces) && !has_references(node) &&
                            find_onnx_op({}, node.op.view())->op->same != nullptr;  // of one element: itself
  const bool is_one = is_onnx(node, kGather) && node.input(1) && node.input(1)->type.rank() == 0;
  if ((!is_reduction && !is_one && !is_onnx(node, kExpand)) || x == nullptr || y == nullptr) return false;
  return x->type.shape && y->type.shape && without_ones(*x->type.shape) == without_ones(*y->type.shape);
}

bool is_reshape(const Node* node) {
  return is_onnx(node, kReshape) || is_onnx(node, kFlatten) || is_onnx(node, kSqueeze) || is_onnx(node, kUnsqueeze) ||
         (is_onnx(node, kTranspose) && keeps_order(*node)) || (node != nullptr && changes_ones_only(*node));
}

/// Where the outputs of all its users that are no reshapes would still need the value, it has to stay.
bool goes_away(const Value* value) {
  constexpr size_t kMost = 8;
  return value->uses.size() <= kMost && std::all_of(value->uses.begin(), value->uses.end(), [&](const Use& use) {
           return use.user != nullptr && use.user->graph == value->graph && use.index == 0 && is_reshape(use.user);
         });
}

/// 1. One of them after another is none where the shape is that of the beginning, Squeeze or Unsqueeze where only axes
///    of size 1 come or go, otherwise Reshape, where constants can say its shape.
bool merge_by_shapes(Node& node, Node& before, Rewriter& rewriter) {
  Value *x = before.input(0), *y = node.output(0);
  if (x == nullptr || !x->type.shape || !y->type.shape || x->type.dtype != y->type.dtype) return false;
  const bool is_same = have_same_type(x, y);
  if (is_same && rewriter.replace(y, x)) return true;
  if (!goes_away(node.input(0))) return false;
  // where both have names to keep, they stay
  Value* made = is_same ? rewriter.add(node, {"Identity", {x}}, y->name) : add_reshape(node, rewriter, x, y);
  if (made == nullptr) return false;
  made->producer->name = node.name;  // which may say what module it is in
  return rewriter.replace(y, made);
}

/// 2. A Reshape whose shape copies no size does not care for what shape it is given.
bool skip_before_reshape(Node& node, Node& before, Rewriter& rewriter) {
  const Value* shape = is_onnx(node, kReshape) ? node.input(1) : nullptr;
  if (shape == nullptr || before.input(0) == nullptr || only_user(node.input(0)) == nullptr) return false;
  if (int_of(node, "allowzero").value_or(0) == 0) {
    Dims sizes;
    if (shape->known_ints) {
      sizes = *shape->known_ints;
    } else if (const auto numbers = ints_of(node, "shape")) {
      sizes.assign(numbers->begin(), numbers->end());
    } else {
      return false;
    }
    if (std::any_of(sizes.begin(), sizes.end(), [](const Dim& size) { return size.is(0); })) return false;
  }
  rewriter.set_input(node, 0, before.input(0));
  return true;
}

}  // namespace

bool merge_reshapes(Node& node, Rewriter& rewriter) {
  if (!is_reshape(&node) || node.input(0) == nullptr || node.output(0) == nullptr || node.output(0)->uses.empty())
    return false;
  Node* before = node.input(0)->producer;
  if (before == nullptr || before->graph != node.graph || !is_reshape(before) || before->output(0) == nullptr)
    return false;
  return merge_by_shapes(node, *before, rewriter) || skip_before_reshape(node, *before, rewriter);
}

}  // namespace tonnx
