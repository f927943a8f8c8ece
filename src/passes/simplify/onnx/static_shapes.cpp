// static_shapes.cpp - sizes that are computed at run time, and need not be.
#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>

#include "ops/frame/op_def.h"
#include "passes/frame/op_symbols.h"
#include "passes/frame/scope.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

bool is_open(const Value* value) { return value != nullptr && !value->constant; }

/// 1. The shape of a Reshape: numbers, 0 for a size that stays, -1 for one that follows from the others.
bool fix_reshape(Node& node, Rewriter& rewriter) {
  const Value *x = node.input(0), *shape = node.input(1), *y = node.output(0);
  if (!is_open(shape) || x == nullptr || y == nullptr || !x->type.shape || !y->type.shape) return false;
  const auto target = reshape_to(*x->type.shape, *y->type.shape, int_of(node, "allowzero").value_or(0) != 0);
  if (!target) return false;
  rewriter.set_input(node, 1, rewriter.ints(*node.graph, *target, "shape"));
  return true;
}

/// 2. The shape of an Expand: a 1 keeps the size that is there.
bool fix_expand(Node& node, Rewriter& rewriter) {
  const Value *x = node.input(0), *shape = node.input(1), *y = node.output(0);
  if (!is_open(shape) || x == nullptr || y == nullptr || !x->type.shape || !y->type.shape) return false;
  const Shape &from = *x->type.shape, &to = *y->type.shape;
  if (to.size() < from.size()) return false;
  std::vector<int64_t> target;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t shift = to.size() - from.size();
    const bool is_kept = i >= shift && from[i - shift] == to[i];
    const auto size = to[i].constant();
    if (!size && !is_kept) return false;
    target.push_back(is_kept ? 1 : *size);
  }
  rewriter.set_input(node, 1, rewriter.ints(*node.graph, std::move(target), "shape"));
  return true;
}

/// 3. The end of a Slice that is the end of the tensor, and its start that is the beginning, counted from there.
bool fix_slice(Node& node, Rewriter& rewriter) {
  const Value *x = node.input(0), *ends = node.input(2);
  if (x == nullptr || !x->type.shape || !is_open(ends) || !ends->known_ints) return false;
  const auto rank = static_cast<int64_t>(x->type.shape->size());
  const auto axes = node.input(3) ? ints_of(node, "axes") : std::nullopt;
  const auto steps = node.input(4) ? ints_of(node, "steps") : std::nullopt;
  if ((node.input(3) && !axes) || (node.input(4) && !steps)) return false;
  std::vector<int64_t> fixed;
  for (size_t i = 0; i < ends->known_ints->size(); ++i) {
    const Dim& end = (*ends->known_ints)[i];
    if (const auto number = end.constant()) {
      fixed.push_back(*number);
      continue;
    }
    if ((axes && i >= axes->size()) || (steps && (i >= steps->size() || (*steps)[i] < 0))) return false;
    const auto axis = from_front(axes ? (*axes)[i] : static_cast<int64_t>(i), rank);
    if (!axis || !((*x->type.shape)[static_cast<size_t>(*axis)] == end)) return false;
    fixed.push_back(std::numeric_limits<int64_t>::max());
  }
  if (ends->type.dtype != DType::Int64) return false;
  rewriter.set_input(node, 2, rewriter.ints(*node.graph, std::move(fixed), "ends"));
  return true;
}

}  // namespace

bool static_shapes(Node& node, Rewriter& rewriter) {
  if (is_onnx(node, kReshape)) return fix_reshape(node, rewriter);
  if (is_onnx(node, kExpand)) return fix_expand(node, rewriter);
  if (is_onnx(node, kSlice)) return fix_slice(node, rewriter);
  return false;
}

namespace {

std::string sizes_key(const Value& value) {
  std::string key = text_of(value.type);
  for (const Dim& dim : *value.known_ints) {
    key += '|';
    key += dim.text();
  }
  return key;
}

bool share_sizes(Graph& graph, Rewriter& rewriter, const Scope<Value*>* around) {
  Scope<Value*> scope{around, {}};
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) is_changed |= share_sizes(*subgraph, rewriter, &scope);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      Value* output = node->output(i);
      if (output == nullptr || !output->known_ints || output->constant || output->uses.empty() || !output->type.shape)
        continue;
      const std::string key = sizes_key(*output);
      Value* same = scope.find(key);
      if (same == nullptr || same->producer == nullptr) {  // what it was made for may be gone by now
        scope.own.insert_or_assign(key, output);
        continue;
      }
      is_changed |= rewriter.replace(output, same);
      if (node->graph == nullptr) break;
    }
    node = next;
  }
  return is_changed;
}

}  // namespace

/// 1. Small tensors of sizes whose elements are known to be the same expressions are one.
bool share_sizes(Graph& graph, Rewriter& rewriter) { return share_sizes(graph, rewriter, nullptr); }

}  // namespace tonnx
