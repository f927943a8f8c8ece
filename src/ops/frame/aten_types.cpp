// aten_types.cpp - what rules ask of a node, and the rules that operators of many families share.
#include "ops/frame/aten_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "ops/frame/result_dtype.h"

namespace tonnx {
namespace {

constexpr std::string_view kOfRun = "data ";

}  // namespace

Dim NewSizes::next() { return Dim::symbol(fmt::format("{}{}{}", kOfRun, tag_, count_++)); }

TypeNode::TypeNode(Node& node, const AtenOpEntry& entry, NewSizes& symbols)
    : node_(&node),
      symbols_(&symbols),
      args_(node, entry, [](const Value*, int) { return std::string(); }),
      found_(node.outputs().size()) {}

const Type* TypeNode::tensor(std::string_view argument) const {
  const Value* value = args_.value(argument);
  return value && value->type.is_tensor() ? &value->type : nullptr;
}

const Type* TypeNode::first() const {
  for (const Value* input : node_->inputs()) {
    if (input && input->type.is_tensor()) return &input->type;
  }
  return nullptr;
}

const Shape* TypeNode::shape(std::string_view argument) const {
  const Type* type = tensor(argument);
  return type && type->shape ? &*type->shape : nullptr;
}

DType TypeNode::dtype(std::string_view argument) const {
  const Type* type = tensor(argument);
  return type ? type->dtype : DType::Undefined;
}

std::vector<const Type*> TypeNode::tensors(std::string_view argument) const {
  std::vector<const Type*> result;
  const Attribute* given = node_->find_attribute(argument);
  const auto* list = given ? given->value.get<AttrList>() : nullptr;
  if (list == nullptr) return result;
  for (const AttrValue& item : *list) {
    const auto* at = item.get<Operand>();
    const Value* value = at ? node_->input(at->index) : nullptr;
    result.push_back(value && value->type.is_tensor() ? &value->type : nullptr);
  }
  return result;
}

namespace {

std::optional<Dim> dim_of(const Node& node, const AttrValue& value) {
  if (const auto* i = value.get<int64_t>()) return Dim(*i);
  const auto* at = value.get<Operand>();
  const Value* operand = at ? node.input(at->index) : nullptr;
  if (operand == nullptr || operand->type.kind != Type::Kind::Int || !operand->known_ints) return std::nullopt;
  return operand->known_ints->at(0);
}

}  // namespace

bool is_of_tensor(const Value* number) {
  const Node* node = number ? number->producer : nullptr;
  if (node == nullptr || number->type.kind != Type::Kind::Int) return false;
  if (node->op == "item") {
    const Node* tensor = node->input(0) ? node->input(0)->producer : nullptr;
    return tensor == nullptr || tensor->op != "clamp";
  }
  if (node->domain != "_operator" && node->domain != "torch") return false;
  return std::any_of(node->inputs().begin(), node->inputs().end(), is_of_tensor);
}

std::optional<Dim> TypeNode::size(std::string_view argument) const { return dim_of(*node_, *args_.constant(argument)); }

MaybeShape TypeNode::sizes(std::string_view argument) const {
  const AttrValue& value = *args_.constant(argument);
  if (const auto* ints = value.get<std::vector<int64_t>>()) return Shape(ints->begin(), ints->end());
  if (const auto one = dim_of(*node_, value)) return Shape{*one};
  const auto* list = value.get<AttrList>();
  if (list == nullptr) return std::nullopt;
  Shape result;
  for (const AttrValue& item : *list) {
    const auto each = dim_of(*node_, item);
    if (!each) return std::nullopt;
    result.push_back(*each);
  }
  return result;
}

MaybeShape TypeNode::new_sizes(std::string_view argument) {
  MaybeShape result = sizes(argument);
  const auto* list = result ? args_.constant(argument)->get<AttrList>() : nullptr;
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* at = (*list)[i].get<Operand>();
    if (at && is_of_tensor(node_->input(at->index))) (*result)[i] = fresh();
  }
  return result;
}

Shape TypeNode::list(std::string_view argument) const {
  return args_.signature().find_input(argument) >= 0 ? sizes(argument).value_or(Shape()) : Shape();
}

std::optional<size_t> TypeNode::dim(std::string_view argument, size_t rank) const {
  auto given = args_.find_int(argument);
  if (!given) return std::nullopt;
  if (*given < 0) *given += static_cast<int64_t>(rank);
  return *given >= 0 && *given < static_cast<int64_t>(rank) ? std::optional(static_cast<size_t>(*given)) : std::nullopt;
}

std::optional<DType> TypeNode::given_dtype() const {
  const Attribute* given = node_->find_attribute("dtype");
  const auto* dtype = given ? given->value.get<DType>() : nullptr;
  return dtype ? std::optional(*dtype) : std::nullopt;
}

DType TypeNode::joint_dtype(std::initializer_list<std::string_view> arguments) const {
  return tonnx::joint_dtype(*node_, arguments);
}

DType TypeNode::joint_float(std::initializer_list<std::string_view> arguments) const {
  const DType dtype = joint_dtype(arguments);
  return is_float(dtype) || is_complex(dtype) || dtype == DType::Undefined ? dtype : DType::Float32;
}

Dim TypeNode::fresh() { return symbols_->next(); }

void TypeNode::set(size_t output, DType dtype, MaybeShape shape) {
  if (output < found_.size()) found_[output] = Type::tensor(dtype, std::move(shape));
}

MaybeShape joint_shape(const Shape& a, const Shape& b) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& size = result[offset + i];
    if (size == shorter[i] || shorter[i].is(1)) continue;
    if (size.is(1) || (shorter[i].is_constant() && !size.is_constant())) {
      size = shorter[i];
    } else if (size.is_constant() && shorter[i].is_constant()) {
      return std::nullopt;
    }
  }
  return result;
}

void types_joint_without_dim(TypeNode& n, std::string_view a, std::string_view b) {
  const Shape *x = n.shape(a), *y = n.shape(b);
  MaybeShape shape = x && y ? joint_shape(*x, *y) : std::nullopt;
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim) shape->erase_at(static_cast<int64_t>(*dim));
  n.set(n.joint_dtype({a, b}), dim ? shape : std::nullopt);
}

Dim size_at(const Shape& list, size_t i, const Dim& otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : std::min(i, list.size() - 1)];
}

namespace {

bool is_of_run(const Dim& size) { return size.symbol_name().value_or("").starts_with(kOfRun); }

/// Whether two sizes differ, as far as is known, and one that only the run tells may be the 1 that is repeated.
bool is_open(const Dim& a, const Dim& b) {
  return a != b && !a.is_constant() && !b.is_constant() && (is_of_run(a) || is_of_run(b));
}

}  // namespace

void types_elementwise(TypeNode& n) {
  MaybeShape shape = Shape();
  for (const Value* input : n.node().inputs()) {
    if (input == nullptr || !input->type.is_tensor()) continue;
    const MaybeShape before = shape;
    const MaybeShape& other = input->type.shape;
    shape = shape && other ? joint_shape(*shape, *other) : std::nullopt;
    for (size_t i = 1; shape && i <= std::min(before->size(), other->size()); ++i) {
      if (is_open(before->at(before->size() - i), other->at(other->size() - i)))
        shape->at(shape->size() - i) = n.fresh();
    }
  }
  const Type* self = n.tensor("self");
  if (self == nullptr) self = n.first();
  n.set(result_dtype(n.node(), self ? self->dtype : DType::Undefined), shape);
}

void types_as_first(TypeNode& n) {
  const Type* first = n.first();
  if (first != nullptr) n.set(n.given_dtype().value_or(first->dtype), first->shape);
}

void types_as_self(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) self = n.first();
  if (self != nullptr) n.set(self->dtype, self->shape);
}

void types_as_input(TypeNode& n) {
  const Type* input = n.tensor("input");
  if (input == nullptr) input = n.first();
  if (input != nullptr) n.set(input->dtype, input->shape);
}

TypeFn types_of(const AtenOp& op) {
  if (op.types != nullptr) return op.types;
  return op.elementwise != Elementwise::No ? types_elementwise : nullptr;
}

void find_types(TypeNode& n, const AtenOp& op) {
  const TypeFn rule = types_of(op);
  if (rule == nullptr) return;
  try {
    rule(n);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
  }
}

}  // namespace tonnx
