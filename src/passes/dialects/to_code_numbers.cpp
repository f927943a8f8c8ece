// to_code_numbers.cpp - constants of one number as literals.
#include <algorithm>

#include "passes/dialects/to_code_steps.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

/// A number that the model's code has, and that tracing made a tensor of.
bool is_lifted(const Value* value) {
  if (value == nullptr || !value->constant || value->trainable || !value->constant->dims.empty()) return false;
  const size_t dot = value->name.rfind('.');
  const std::string_view last = std::string_view(value->name).substr(dot == std::string::npos ? 0 : dot + 1);
  const DType dtype = value->constant->dtype;
  return last.starts_with("lifted_tensor") && (dtype == DType::Bool || is_float(dtype) || is_integer(dtype));
}

AttrValue literal_of(const Tensor& tensor) {
  if (tensor.dtype == DType::Bool) return element_as_int(tensor, 0) != 0;
  if (is_integer(tensor.dtype)) return element_as_int(tensor, 0);
  return element_as_double(tensor, 0);
}

int category(DType dtype) { return dtype == DType::Bool ? 0 : is_integer(dtype) ? 1 : is_float(dtype) ? 2 : 3; }

bool is_binary(const Node& node) {
  constexpr std::string_view kOps[] = {"add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge"};
  return node.domain == "aten" && node.overload == "Tensor" &&
         std::any_of(std::begin(kOps), std::end(kOps), [&](std::string_view op) { return node.op == Symbol(op); });
}

/// A tensor that has dimensions decides about the type, as it does beside a number, where the number is of no higher
/// kind.
void make_literal(Node& node) {
  const Attribute *self = node.find_attribute("self"), *other = node.find_attribute("other");
  const auto* left = self ? self->value.get<Operand>() : nullptr;
  const auto* right = other ? other->value.get<Operand>() : nullptr;
  if (left == nullptr || right == nullptr) return;
  const bool commutes = (node.op == "add" && node.find_attribute("alpha") == nullptr) || node.op == "mul";
  if (commutes && is_lifted(node.input(left->index))) {
    Value *first = node.input(left->index), *second = node.input(right->index);
    node.set_input(left->index, second);
    node.set_input(right->index, first);
  }
  if (!is_lifted(node.input(right->index))) return;
  const Type& type = node.input(left->index)->type;
  const Tensor& constant = *node.input(right->index)->constant;
  const bool decides = type.is_tensor() && type.shape && !type.shape->empty();
  if (!decides || category(constant.dtype) > category(type.dtype) || category(type.dtype) > 2) return;
  // in halves the number would be rounded to them first
  if (constant.dtype != type.dtype && type.dtype != DType::Float32 && type.dtype != DType::Int64) return;
  const uint32_t index = right->index;
  AttrValue number = literal_of(constant);
  node.set_input(index, nullptr);
  node.set_attribute("other", std::move(number));
}

/// x + 0 of integers: what is left of offsets that are zero in this program. And x * 1 of any numbers.
bool is_neutral(const Node& node) {
  if (node.inputs().size() != 1 || node.outputs().size() != 1 || operand(node, "self") == nullptr) return false;
  const Type &before = node.input(0)->type, &after = node.output(0)->type;
  if (!before.is_tensor() || before.dtype != after.dtype || !before.shape || before.shape != after.shape) return false;
  const bool scales = node.op == "mul" || (node.op == "div" && is_float(before.dtype));
  if (scales && number_of(node, "other") == 1.0) return true;
  const Attribute* other = node.find_attribute("other");
  const auto* number = other ? other->value.get<int64_t>() : nullptr;
  return is_integer(before.dtype) && (node.op == "add" || node.op == "sub") && number && *number == 0;
}

void make_full(Node& node) {
  const bool is_expand = node.domain == "aten" && node.op == "expand" && node.overload.empty();
  if (!is_expand || !is_lifted(node.input(0)) || node.graph->owner != nullptr) return;
  const Attribute* size = node.find_attribute("size");
  if (size == nullptr) return;
  const DType dtype = node.input(0)->constant->dtype;
  AttrValue number = literal_of(*node.input(0)->constant);
  node.take_attribute("self");
  node.take_attribute("implicit");
  node.set_input(0, nullptr);
  node.op = "full";
  node.set_attribute("fill_value", std::move(number));
  const bool is_usual = dtype == DType::Float32 || dtype == DType::Int64 || dtype == DType::Bool;
  if (!is_usual) node.set_attribute("dtype", dtype);
}

}  // namespace

void make_literals(Graph& graph) {
  for (Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) make_literals(*subgraph);
    if (is_binary(node)) make_literal(node);
    if (is_binary(node) && is_neutral(node)) graph.replace_uses(node.output(0), node.input(0));
    make_full(node);
  }
}

}  // namespace tonnx
