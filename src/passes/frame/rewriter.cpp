// rewriter.cpp - changes of ONNX graphs that keep names of outputs, and leave nothing unused behind.
#include "passes/frame/rewriter.h"

#include <algorithm>

#include "base/error.h"
#include "ops/frame/op_def.h"

namespace tonnx {
namespace {

/// A value takes over the name of another one: all that was written with the old name is written anew.
void swap_names(Value* a, Value* b) {
  std::swap(a->name, b->name);
  for (const Value* value : {a, b}) {
    if (value->producer != nullptr) value->producer->mark_changed();
    for (const Use& use : value->uses) {
      if (use.user != nullptr) use.user->mark_changed();
    }
  }
}

}  // namespace

bool Rewriter::has_op(std::string_view op) const { return schema_version(op, opset_) != 0; }

Value* Rewriter::add(Node& before, NewNode node, std::string_view hint) {
  Graph& graph = *before.graph;
  if (node.domain.empty() && !has_op(node.op)) return nullptr;
  Node* made = graph.add_node(node.domain, node.op, &before);
  made->version = node.domain.empty() ? kNewestOpset : 1;
  made->attributes = std::move(node.attributes);
  made->metadata = before.metadata;
  for (size_t i = 0; i < node.inputs.size(); ++i) made->set_input(i, node.inputs[i]);
  for (size_t i = 0; i < node.outputs; ++i) graph.add_output_to(made, graph.unique_name(hint.empty() ? node.op : hint));
  Value* output = made->output(0);
  hooks_.infer(*made);
  if (node.domain.empty() && !hooks_.bring_down(*made)) {
    graph.erase(made);
    return nullptr;
  }
  return output;
}

Value* Rewriter::constant(Graph& graph, TensorPtr tensor, std::string_view hint) {
  return graph.add_initializer(std::string(hint), std::move(tensor));
}

Value* Rewriter::ints(Graph& graph, std::vector<int64_t> values, std::string_view hint) {
  return constant(graph, make_ints(std::move(values)), hint);
}

bool Rewriter::replace(Value* value, Value* by) {
  if (value == by) return false;
  Graph& graph = *value->graph;
  if (is_graph_output(value)) {
    const bool can_rename = by->producer != nullptr && by->graph == &graph && !is_graph_output(by);
    if (!can_rename) {
      const std::vector<Use> uses = value->uses;
      for (const Use& use : uses) {
        if (use.user != nullptr) use.user->set_input(use.index, by);
      }
      return false;
    }
    swap_names(value, by);
  }
  if (by->type.is_tensor() && !by->type.shape && value->type.shape) by->type = value->type;  // what the file says of it
  graph.replace_uses(value, by);
  erase_unused(value->producer);
  return true;
}

void Rewriter::set_input(Node& node, size_t i, Value* value) {
  Value* old = node.input(i);
  if (old == value) return;
  node.set_input(i, value);
  if (old != nullptr && old->uses.empty()) erase_unused(old->producer);
}

void Rewriter::erase_unused(Node* node) {
  std::vector<Node*> todo{node};
  while (!todo.empty()) {
    Node* each = todo.back();
    todo.pop_back();
    if (each == nullptr || each->graph == nullptr) continue;
    if (std::any_of(each->outputs().begin(), each->outputs().end(), is_used)) continue;
    const std::vector<Value*> inputs = each->inputs();
    each->graph->erase(each);
    for (const Value* input : inputs) {
      if (input != nullptr && input->uses.empty() && input->producer != nullptr) todo.push_back(input->producer);
    }
  }
}

std::optional<std::vector<int64_t>> reshape_to(const Shape& from, const Shape& to, bool zero_is_zero) {
  const auto opens = std::count_if(to.begin(), to.end(), [](const Dim& dim) { return !dim.is_constant(); });
  std::vector<int64_t> result;
  bool has_rest = false;
  for (size_t i = 0; i < to.size(); ++i) {
    const bool is_kept = i < from.size() && from[i] == to[i] && !zero_is_zero;
    if (const auto size = to[i].constant()) {
      if (*size == 0 && !zero_is_zero && !is_kept) return std::nullopt;
      result.push_back(*size);
    } else if (opens > 1 && is_kept) {
      result.push_back(0);
    } else if (!has_rest) {
      has_rest = true;
      result.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  // the rest of nothing can be anything
  if (has_rest && std::any_of(to.begin(), to.end(), [](const Dim& dim) { return dim.is(0); })) return std::nullopt;
  return result;
}

namespace {

/// Axes of size 1 whose removal makes one shape the other.
std::optional<std::vector<int64_t>> squeezed_axes(const Shape& from, const Shape& to) {
  std::vector<int64_t> axes;
  size_t kept = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (kept < to.size() && from[i] == to[kept])
      ++kept;
    else if (from[i].is(1))
      axes.push_back(static_cast<int64_t>(i));
    else
      return std::nullopt;
  }
  return kept == to.size() ? std::optional(axes) : std::nullopt;
}

}  // namespace

Value* add_reshape(Node& node, Rewriter& rewriter, Value* x, const Value* y) {
  const Shape &from = *x->type.shape, &to = *y->type.shape;
  const auto ints = [&](const std::vector<int64_t>& values, const char* name) {
    return rewriter.ints(*node.graph, values, name);
  };
  if (const auto removed = squeezed_axes(from, to))
    return rewriter.add(node, {"Squeeze", {x, ints(*removed, "axes")}}, y->name);
  if (const auto added = squeezed_axes(to, from))
    return rewriter.add(node, {"Unsqueeze", {x, ints(*added, "axes")}}, y->name);
  const auto shape = reshape_to(from, to);
  return shape ? rewriter.add(node, {"Reshape", {x, ints(*shape, "shape")}}, y->name) : nullptr;
}

}  // namespace tonnx
