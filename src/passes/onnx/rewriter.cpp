// rewriter.cpp - changes of ONNX graphs that keep names of outputs, and leave nothing unused behind.
#include "passes/onnx/rewriter.h"

#include <algorithm>

#include "base/computed.h"
#include "base/error.h"
#include "ops/frame/op_def.h"

namespace tonnx {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of a constant that is looked at as a whole

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

bool is_used(const Value* value) { return value != nullptr && !value->uses.empty(); }

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

bool has_references(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const Attribute& attribute) { return !attribute.reference.empty(); });
}

Node* producer_of(const Value* value, Symbol op) {
  if (value == nullptr || !is_onnx(value->producer, op)) return nullptr;
  return value->producer;
}

Node* only_user(const Value* value) {
  if (value->uses.size() != 1) return nullptr;
  Node* user = value->uses[0].user;
  return user != nullptr && user->graph == value->graph ? user : nullptr;
}

bool is_graph_output(const Value* value) {
  return std::any_of(value->uses.begin(), value->uses.end(), [](const Use& use) { return use.user == nullptr; });
}

namespace {

/// The constant that an input of that name has; null where there is no such input, or it is not constant.
TensorPtr constant_input(const Node& node, std::string_view name) {
  const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
  if (entry == nullptr) return nullptr;
  const auto& inputs = entry->signature.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == name) return node.input(i) ? node.input(i)->constant : nullptr;
  }
  return nullptr;
}

}  // namespace

std::optional<std::vector<int64_t>> ints_of(const Node& node, std::string_view name) {
  if (const Attribute* attribute = node.find_attribute(name)) {
    if (const auto* list = attribute->value.get<std::vector<int64_t>>()) return *list;
    if (const auto* one = attribute->value.get<int64_t>()) return std::vector{*one};
    return std::nullopt;
  }
  const TensorPtr tensor = constant_input(node, name);
  return tensor && is_integer(tensor->dtype) ? tonnx::ints_of(*tensor) : std::nullopt;
}

std::optional<int64_t> int_of(const Node& node, std::string_view name) {
  const auto all = ints_of(node, name);
  return all && all->size() == 1 ? std::optional(all->front()) : std::nullopt;
}

std::optional<double> float_of(const Node& node, std::string_view name) {
  if (const Attribute* attribute = node.find_attribute(name)) {
    const auto* one = attribute->value.get<double>();
    return one ? std::optional(*one) : std::nullopt;
  }
  const TensorPtr tensor = constant_input(node, name);
  const auto all = tensor && tensor->count() == 1 ? floats_of(*tensor) : std::nullopt;
  return all && all->size() == 1 ? std::optional(all->front()) : std::nullopt;
}

std::optional<std::vector<double>> floats_of(const Node& node, std::string_view name) {
  if (const Attribute* attribute = node.find_attribute(name)) {
    const auto* list = attribute->value.get<std::vector<double>>();
    return list ? std::optional(*list) : std::nullopt;
  }
  const TensorPtr tensor = constant_input(node, name);
  return tensor ? tonnx::floats_of(*tensor) : std::nullopt;
}

std::optional<std::string> text_of(const Node& node, std::string_view name) {
  const Attribute* attribute = node.find_attribute(name);
  const auto* text = attribute ? attribute->value.get<std::string>() : nullptr;
  return text ? std::optional(*text) : std::nullopt;
}

bool has(const Node& node, std::string_view name) {
  if (node.find_attribute(name) != nullptr) return true;
  const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
  if (entry == nullptr) return false;
  const auto& inputs = entry->signature.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == name) return node.input(i) != nullptr;
  }
  return false;
}

std::optional<double> uniform_value(const Value* value) {
  if (value == nullptr || !value->constant || value->sparse || is_computed(value->constant->data)) return std::nullopt;
  static const Symbol kDequantize("DequantizeLinear");
  if (is_onnx(value->producer, kDequantize)) return std::nullopt;  // it stays with those that use it
  const Tensor& tensor = *value->constant;
  const int64_t count = tensor.count();
  if (count == 0 || count > kMostElements || tensor.dtype == DType::String || is_complex(tensor.dtype))
    return std::nullopt;
  const uint64_t first = element_bits(tensor, 0);
  for (int64_t i = 1; i < count; ++i) {
    if (element_bits(tensor, i) != first) return std::nullopt;
  }
  return element_as_double(tensor, 0);
}

bool have_same_type(const Value* a, const Value* b) {
  return a->type.is_tensor() && b->type.is_tensor() && a->type.dtype != DType::Undefined && a->type.shape &&
         b->type.shape && a->type == b->type;
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

std::optional<int64_t> from_front(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

std::optional<std::vector<int64_t>> axes_from_front(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (const int64_t axis : axes) {
    const auto found = from_front(axis, rank);
    if (!found) return std::nullopt;
    result.push_back(*found);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) return std::nullopt;
  return result;
}

}  // namespace tonnx
