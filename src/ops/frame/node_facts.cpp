// node_facts.cpp - what nodes of ONNX say, whatever opset they follow.
#include "ops/frame/node_facts.h"

#include <algorithm>

#include "base/computed.h"

namespace tonnx {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of a constant that is looked at as a whole

}  // namespace

bool has_references(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const Attribute& attribute) { return !attribute.reference.empty(); });
}

Node* producer_of(const Value* value, Symbol op) {
  if (value == nullptr || !is_onnx(value->producer, op)) return nullptr;
  return value->producer;
}

Node* producer_with(const Value* value, OnnxTrait trait) {
  Node* producer = value == nullptr ? nullptr : value->producer;
  return producer != nullptr && has_trait(*producer, trait) && !has_references(*producer) ? producer : nullptr;
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

bool all_are(const std::optional<std::vector<int64_t>>& numbers, int64_t number) {
  return numbers && std::all_of(numbers->begin(), numbers->end(), [&](int64_t each) { return each == number; });
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
