// heads.cpp - aten: recognises moves of dimensions that exporters write as reshapes around a transpose.
#include <algorithm>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// transpose(x, a, b) with known dimensions: them, the lesser one first.
std::optional<std::pair<int64_t, int64_t>> swapped_dims(const Node* node) {
  if (!is_aten(node, "transpose", "int")) return std::nullopt;
  const int64_t *a = find_int(*node, "dim0"), *b = find_int(*node, "dim1");
  if (!a || !b || *a < 0 || *b < 0) return std::nullopt;
  return std::pair(std::min(*a, *b), std::max(*a, *b));
}

Node* add_after_reading(Graph& graph, Node& last, std::string_view op, Value* x) {
  Node* made = graph.add_node("aten", op, &last);
  made->name = last.name;
  made->metadata = last.metadata;
  add_operand(*made, "self", x);
  return made;
}

void end_with_permute(Graph& graph, Node& last, Value* x, std::vector<int64_t> dims) {
  Node* permute = add_after_reading(graph, last, "permute", x);
  permute->attributes.push_back({"dims", std::move(dims), AttrType::None, {}, {}});
  graph.move_output(last.output(0), permute, 0);
  last.resize_outputs(0);
}

/// 1. squeeze(transpose(y, 0, k), k) of a tensor y that begins with a dimension of size 1: the rest of y with the
/// dimension k in front
bool move_to_front(Graph& graph, Node& last) {
  const bool is_squeeze = is_aten(last, "squeeze", "dim") || is_aten(last, "squeeze", "dims");
  const Node* turn = is_squeeze ? single_use_producer(last.input(0), graph) : nullptr;
  const auto swapped = swapped_dims(turn);
  const Attribute* squeezed = last.find_attribute("dim");
  const auto* one = squeezed ? squeezed->value.get<int64_t>() : nullptr;
  if (const auto* list = squeezed ? squeezed->value.get<std::vector<int64_t>>() : nullptr; list && list->size() == 1)
    one = list->data();
  if (!swapped || swapped->first != 0 || swapped->second < 2 || !one || *one != swapped->second) return false;
  Value* y = operand(*turn, "self");
  const Node* widened = single_use_producer(y, graph);
  const auto& shape = y->type.shape;
  if (!shape || static_cast<int64_t>(shape->size()) <= swapped->second || !shape->front().is(1)) return false;
  const Shape rest(shape->begin() + 1, shape->end());
  Value* x = is_aten(widened, "unsqueeze") || is_aten(widened, "reshape") ? operand(*widened, "self") : nullptr;
  if (x == nullptr || !x->type.shape) return false;
  if (!(*x->type.shape == rest)) {  // a reshape that does more than to add the dimension
    const Attribute* target = is_aten(widened, "reshape") ? widened->find_attribute("shape") : nullptr;
    const auto* sizes = target ? target->value.get<std::vector<int64_t>>() : nullptr;
    if (sizes == nullptr || sizes->size() != shape->size() || sizes->front() != 1) return false;
    Node* reshape = add_after_reading(graph, last, "reshape", x);
    reshape->attributes.push_back(
        {"shape", std::vector<int64_t>(sizes->begin() + 1, sizes->end()), AttrType::None, {}, {}});
    Type type = y->type;
    type.shape = rest;
    x = graph.add_output_to(reshape, graph.unique_name(y->name), type);
  }
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < static_cast<int64_t>(rest.size()); ++dim) dims.push_back(dim);
  const auto moved = dims.begin() + swapped->second - 1;
  std::rotate(dims.begin(), moved, moved + 1);
  end_with_permute(graph, last, x, std::move(dims));
  return true;
}

/// 2. reshape(transpose(reshape(x, [a, b * h, d]), 0, 1), [b, h, a, d]) of a tensor [a, b, h * d]: the heads beside the
/// batch, permute(unflatten(x, -1, [h, d]), [1, 2, 0, 3])
bool split_heads(Graph& graph, Node& last) {
  const Node* turn = is_aten(last, "reshape") ? single_use_producer(operand(last, "self"), graph) : nullptr;
  if (swapped_dims(turn) != std::pair<int64_t, int64_t>(0, 1)) return false;
  const Value* rows = operand(*turn, "self");
  const Node* first = single_use_producer(rows, graph);
  Value* x = is_aten(first, "reshape") ? operand(*first, "self") : nullptr;
  const auto& to = last.output(0)->type.shape;
  if (x == nullptr || !x->type.shape || !rows->type.shape || !to) return false;
  const Shape &from = *x->type.shape, &middle = *rows->type.shape;
  if (from.size() != 3 || middle.size() != 3 || to->size() != 4) return false;
  const auto units = from[2].constant(), heads = (*to)[1].constant(), size = (*to)[3].constant();
  const bool fits = units && heads && size && *heads > 0 && *size > 0 && *units / *heads == *size &&
                    *units % *heads == 0 && middle[0] == from[0] && middle[2] == (*to)[3] && (*to)[0] == from[1] &&
                    (*to)[2] == from[0];
  if (!fits) return false;
  Node* unflatten = add_after_reading(graph, last, "unflatten", x);
  unflatten->overload = "int";
  unflatten->attributes.push_back({"dim", int64_t{-1}, AttrType::None, {}, {}});
  unflatten->attributes.push_back({"sizes", std::vector<int64_t>{*heads, *size}, AttrType::None, {}, {}});
  Type type = x->type;
  type.shape = Shape{from[0], from[1], (*to)[1], (*to)[3]};
  Value* split = graph.add_output_to(unflatten, graph.unique_name(x->name), type);
  end_with_permute(graph, last, split, {1, 2, 0, 3});
  return true;
}

/// 3. reshape(transpose(reshape(x, [b * h, ...]), i, k), [b, h, ...]) of a tensor [b, h, ...]: what is turned behind
/// the first two dimensions is so without making one of them, transpose(x, i + 1, k + 1)
bool turn_behind_heads(Graph& graph, Node& last) {
  const Node* turn = is_aten(last, "reshape") ? single_use_producer(operand(last, "self"), graph) : nullptr;
  const auto swapped = swapped_dims(turn);
  const Value* rows = swapped && swapped->first > 0 ? operand(*turn, "self") : nullptr;
  const Node* first = single_use_producer(rows, graph);
  const bool merges = is_aten(first, "reshape") || is_aten(first, "flatten", "using_ints");
  Value* x = merges ? operand(*first, "self") : nullptr;
  const auto& to = last.output(0)->type.shape;
  if (x == nullptr || !x->type.shape || !rows->type.shape || !to) return false;
  const Shape &from = *x->type.shape, &middle = *rows->type.shape;
  const auto dim = [](int64_t i) { return static_cast<size_t>(i); };
  if (from.size() != middle.size() + 1 || middle.size() < 3 || dim(swapped->second) >= middle.size()) return false;
  Shape turned = from;
  std::swap(turned[dim(swapped->first + 1)], turned[dim(swapped->second + 1)]);
  if (!(*to == turned) || !std::equal(middle.begin() + 1, middle.end(), from.begin() + 2)) return false;
  Node* made = add_after_reading(graph, last, "transpose", x);
  made->overload = "int";
  made->attributes.push_back({"dim0", swapped->first + 1, AttrType::None, {}, {}});
  made->attributes.push_back({"dim1", swapped->second + 1, AttrType::None, {}, {}});
  graph.move_output(last.output(0), made, 0);
  last.resize_outputs(0);
  return true;
}

/// 4. transpose(transpose(x, i, k), i, k): x
bool turn_back(Graph& graph, Node& last) {
  const auto swapped = swapped_dims(&last);
  const Node* first = swapped ? single_use_producer(operand(last, "self"), graph) : nullptr;
  const bool is_output = std::any_of(last.output(0)->uses.begin(), last.output(0)->uses.end(),
                                     [](const Use& use) { return use.user == nullptr; });
  if (first == nullptr || is_output || swapped_dims(first) != swapped) return false;
  graph.replace_uses(last.output(0), operand(*first, "self"));
  return true;
}

}  // namespace

void recognise_heads(Graph& graph) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_heads(*subgraph);
    if (move_to_front(graph, *node) || split_heads(graph, *node) || turn_behind_heads(graph, *node) ||
        turn_back(graph, *node)) {
      graph.erase(node);
      is_changed = true;
    }
    node = next;
  }
  if (is_changed) remove_unused_nodes(graph);
}

}  // namespace tonnx
