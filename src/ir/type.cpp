// type.cpp - the text of a type.
#include "ir/type.h"

namespace tonnx {

Type::Type() = default;
Type::Type(Kind kind, DType dtype, std::optional<Shape> shape, std::vector<Type> elements)
    : kind(kind), dtype(dtype), shape(std::move(shape)), elements(std::move(elements)) {}
Type::Type(const Type& other) = default;
Type::Type(Type&& other) noexcept = default;
Type& Type::operator=(const Type& other) = default;
Type& Type::operator=(Type&& other) noexcept = default;
Type::~Type() = default;

Type Type::tensor(DType dtype, std::optional<Shape> shape) { return {Kind::Tensor, dtype, std::move(shape), {}}; }
Type Type::sequence(Type element) { return {Kind::Sequence, DType::Undefined, std::nullopt, {std::move(element)}}; }
Type Type::optional(Type element) { return {Kind::Optional, DType::Undefined, std::nullopt, {std::move(element)}}; }
Type Type::number(Kind kind) { return {kind, DType::Undefined, std::nullopt, {}}; }

bool Type::operator==(const Type& other) const {
  return kind == other.kind && dtype == other.dtype && shape == other.shape && elements == other.elements;
}

Type ranked(Type type) {
  if (type.shape) type.shape = Shape(type.shape->size(), Dim::symbol(""));
  for (Type& element : type.elements) element = ranked(std::move(element));
  return type;
}

Type without_shapes(Type type) {
  type.shape.reset();
  for (Type& element : type.elements) element = without_shapes(std::move(element));
  return type;
}

std::string text_of(const Type& type) {
  const auto element = [&] { return type.elements.empty() ? std::string("?") : text_of(type.elements[0]); };
  const auto array = [&] { return std::string(name_of(type.dtype)) + (type.shape ? text_of(*type.shape) : ""); };
  switch (type.kind) {
    case Type::Kind::Unknown: return "?";
    case Type::Kind::Tensor: return array();
    case Type::Kind::SparseTensor: return "sparse(" + array() + ")";
    case Type::Kind::Sequence: return "seq(" + element() + ")";
    case Type::Kind::Map: return "map(" + std::string(name_of(type.dtype)) + ", " + element() + ")";
    case Type::Kind::Optional: return "optional(" + element() + ")";
    case Type::Kind::Opaque: return "opaque";
    case Type::Kind::Int: return "int";
    case Type::Kind::Float: return "float";
    case Type::Kind::Bool: return "bool_";
    case Type::Kind::IntList: return "int[]";
  }
  return "?";
}

}  // namespace tonnx

template class std::vector<tonnx::Type>;
