// type.h - what a value is: a tensor of some element type and shape, a sequence, an optional, a map, or a plain number.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/dtype.h"

namespace tonnx {

struct Type {
  enum class Kind : uint8_t {
    Unknown,
    Tensor,
    SparseTensor,
    Sequence,  // of elements[0]; also a list of tensors in aten
    Map,       // from dtype to elements[0]
    Optional,  // of elements[0]
    Opaque,
    Int,  // plain numbers, in aten only
    Float,
    Bool,
    IntList,
  };

  Kind kind = Kind::Unknown;
  DType dtype = DType::Undefined;
  std::optional<Shape> shape;  // nothing: the rank is unknown
  std::vector<Type> elements;

  Type();
  Type(Kind kind, DType dtype, std::optional<Shape> shape, std::vector<Type> elements);
  Type(const Type& other);
  Type(Type&& other) noexcept;
  Type& operator=(const Type& other);
  Type& operator=(Type&& other) noexcept;
  ~Type();

  static Type tensor(DType dtype, std::optional<Shape> shape = std::nullopt);
  static Type sequence(Type element);
  static Type optional(Type element);
  static Type number(Kind kind);

  bool is_tensor() const { return kind == Kind::Tensor; }
  std::optional<int64_t> rank() const {
    return shape ? std::optional(static_cast<int64_t>(shape->size())) : std::nullopt;
  }

  bool operator==(const Type& other) const;
};

/// The same kind of value, of which only the rank is known.
Type ranked(Type type);
/// The same kind of value, of which not even the rank is known; nor that of what it holds.
Type without_shapes(Type type);

/// `float32[batch, 3]`, `float32` where the rank is unknown, `seq(int64[])`, `optional(...)`, `map(int64, ...)`, `?`.
std::string text_of(const Type& type);

}  // namespace tonnx

extern template class std::vector<tonnx::Type>;
