// aten_types.h - an aten node whose results are typed, and the rules that operators of many families share.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/frame/emission.h"

namespace tonnx {

using MaybeShape = std::optional<Shape>;

/// Names for sizes that only the run tells; the tag tells them from those of an earlier walk.
class NewSizes {
 public:
  explicit NewSizes(std::string_view tag) : tag_(tag) {}
  Dim next();

 private:
  std::string tag_;
  int count_ = 0;
};

/// A node whose outputs are to be typed, seen through its schema.
class TypeNode {
 public:
  TypeNode(Node& node, const AtenOpEntry& entry, NewSizes& symbols);

  const Node& node() const { return *node_; }
  const Emission& args() const { return args_; }

  /// The tensor that an argument is; null where it is none.
  const Type* tensor(std::string_view argument) const;
  /// The first argument that is a tensor.
  const Type* first() const;
  const Shape* shape(std::string_view argument) const;
  DType dtype(std::string_view argument) const;
  /// All tensors of a list argument.
  std::vector<const Type*> tensors(std::string_view argument) const;
  /// An integer argument; nothing where it is none.
  std::optional<Dim> size(std::string_view argument) const;
  MaybeShape sizes(std::string_view argument) const;
  /// The sizes of a new shape. One that is read out of a tensor may be -1 there, for what is left, so that it is fresh.
  MaybeShape new_sizes(std::string_view argument);
  /// The same; empty where the schema does not have the argument, or it is not known.
  Shape list(std::string_view argument) const;
  /// A dimension counted from the front; nothing where it is none of a tensor of that rank.
  std::optional<size_t> dim(std::string_view argument, size_t rank) const;
  /// The element type that the argument `dtype` names.
  std::optional<DType> given_dtype() const;

  /// The element type that arguments have together, by PyTorch's rules for tensors, those of rank 0, and numbers.
  DType joint_dtype(std::initializer_list<std::string_view> arguments) const;
  /// The same, and float32 for integers.
  DType joint_float(std::initializer_list<std::string_view> arguments) const;

  /// A size that only the run tells.
  Dim fresh();

  void set(size_t output, DType dtype, MaybeShape shape);
  void set(DType dtype, MaybeShape shape) { set(0, dtype, std::move(shape)); }
  /// The result is an integer, and this expression over sizes.
  void set_number(Dim number) { number_ = std::move(number); }

  /// What was found of each output.
  std::vector<Type>& found() { return found_; }
  const std::optional<Dim>& number() const { return number_; }

 private:
  Node* node_;
  NewSizes* symbols_;
  Emission args_;
  std::vector<Type> found_;
  std::optional<Dim> number_;
};

/// The rule by which the results of an operator are typed; null where there is none.
TypeFn types_of(const AtenOp& op);

/// Asks the row of the node's operator; nothing is found where it has no rule, or where a size does not fit into 64
/// bits or into an expression.
void find_types(TypeNode& n, const AtenOp& op);

/// Whether a number is read out of a tensor, where it may be negative, as no size is that a symbol stands for.
bool is_of_tensor(const Value* number);

/// The shape of both together; nothing where they do not fit.
MaybeShape joint_shape(const Shape& a, const Shape& b);

/// Of two tensors together, and the axis `dim` gone: of what is summed along it.
void types_joint_without_dim(TypeNode& n, std::string_view a, std::string_view b);

/// The number of a list for dimension `i`: a list has one for each, or one for all.
Dim size_at(const Shape& list, size_t i, const Dim& otherwise);

/// Runs `change` on a copy of the shape of `self`, where it is known, and gives the result `self`'s element type.
template <class Change>
void reshape_self(TypeNode& n, Change&& change) {
  const Shape* shape = n.shape("self");
  n.set(n.dtype("self"), shape ? change(*shape) : MaybeShape());
}

// Shared rules.

void types_elementwise(TypeNode& n);  // all tensors broadcast, of the type that AtenOp::elementwise says
void types_as_first(TypeNode& n);     // as the first tensor, or of the argument `dtype`
void types_as_self(TypeNode& n);      // as `self`
void types_as_input(TypeNode& n);     // as `input`

}  // namespace tonnx
