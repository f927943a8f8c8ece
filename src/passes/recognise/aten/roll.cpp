// roll.cpp - aten: recognises tensors whose two parts change places.
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// A slice with step 1: what it is of, and where it begins and ends; none where that is the end of the tensor.
struct Part {
  Value* of = nullptr;
  int64_t dim = 0, start = 0;
  std::optional<int64_t> end;
};
std::optional<Part> find_part(const Value* value, const Graph& graph) {
  const Node* node = single_use_producer(value, graph);
  if (!is_aten(node, "slice", "Tensor") || node->inputs().size() != 1) return std::nullopt;
  Part part{operand(*node, "self")};
  if (part.of == nullptr || !part.of->type.shape) return std::nullopt;
  const int64_t *dim = find_int(*node, "dim"), *start = find_int(*node, "start"), *end = find_int(*node, "end");
  if (node->find_attribute("step") && !is_number(*node, "step", 1)) return std::nullopt;
  part.dim = dim ? *dim : 0;
  if (part.dim < 0 || part.dim >= static_cast<int64_t>(part.of->type.shape->size())) return std::nullopt;
  const auto size = (*part.of->type.shape)[static_cast<size_t>(part.dim)].constant();
  if (!size) return std::nullopt;
  const auto from_front = [&](int64_t place) { return place < 0 ? place + *size : place; };
  part.start = start ? from_front(*start) : 0;
  if (part.start < 0 || part.start >= *size || (end && from_front(*end) < 0)) return std::nullopt;
  if (end && from_front(*end) < *size) part.end = from_front(*end);
  return part;
}

/// 1. cat([x[k:], x[:k]]): roll(x, -k); 2. of a roll along another dimension: one roll along both
bool replace(Graph& graph, Node& node) {
  if (!is_aten(node, "cat") || node.inputs().size() != 2) return false;
  const auto back = find_part(node.input(0), graph), front = find_part(node.input(1), graph);
  const int64_t* dim = find_int(node, "dim");
  if (!back || !front || back->of != front->of || back->dim != front->dim || back->dim != (dim ? *dim : 0))
    return false;
  if (back->start == 0 || back->end || front->start != 0 || front->end != back->start) return false;
  std::vector<int64_t> shifts{-back->start}, dims{back->dim};
  const int64_t size = *(*back->of->type.shape)[static_cast<size_t>(back->dim)].constant();
  if (back->start * 2 > size) shifts[0] = size - back->start;
  Value* of = back->of;
  const Node* before = of->producer && of->producer->graph == &graph && of->uses.size() == 2 ? of->producer : nullptr;
  const bool is_rolled = is_aten(before, "roll");
  const auto other_dim = is_rolled ? int_of(*before, "dims") : std::nullopt;
  const auto other_shift = is_rolled ? int_of(*before, "shifts") : std::nullopt;
  if (other_dim && other_shift && *other_dim >= 0 && *other_dim != dims[0]) {
    shifts.insert(shifts.begin(), *other_shift);
    dims.insert(dims.begin(), *other_dim);
    of = operand(*before, "self");
  }
  Node* roll = graph.add_node("aten", "roll", &node);
  roll->name = node.name;
  add_operand(*roll, "self", of);
  roll->attributes.push_back({"shifts", std::move(shifts), AttrType::None, {}, {}});
  roll->attributes.push_back({"dims", std::move(dims), AttrType::None, {}, {}});
  graph.move_output(node.output(0), roll, 0);
  node.resize_outputs(0);
  return true;
}

}  // namespace

void recognise_roll(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_roll(*subgraph);
    if (replace(graph, *node)) {
      std::vector<Node*> parts{node->input(0)->producer, node->input(1)->producer};
      graph.erase(node);
      for (Node* part : parts) graph.erase(part);
    }
    node = next;
  }
}

}  // namespace tonnx
