// types.h - types of the values of an aten graph: what PyTorch's operators give, as far as sizes tell.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ops/frame/emission.h"

namespace tonnx {

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
  TypeNode(Node& node, NewSizes& symbols);

  const Node& node() const { return *node_; }
  const Emission& args() const { return args_; }
  std::string_view op() const { return node_->op.view(); }

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
  std::optional<Shape> sizes(std::string_view argument) const;
  /// A dimension counted from the front; nothing where it is none of a tensor of that rank.
  std::optional<size_t> dim(std::string_view argument, size_t rank) const;
  /// The element type that the argument `dtype` names.
  std::optional<DType> given_dtype() const;

  /// A size that only the run tells.
  Dim fresh();

  void set(size_t output, DType dtype, std::optional<Shape> shape);
  void set(DType dtype, std::optional<Shape> shape) { set(0, dtype, std::move(shape)); }

  /// What was found of each output.
  std::vector<Type>& found() { return found_; }

 private:
  Node* node_;
  NewSizes* symbols_;
  Emission args_;
  std::vector<Type> found_;
};

using TypeRule = void (*)(TypeNode&);
struct TypeRow {
  std::string_view op;  // without the overload
  TypeRule rule;
};
/// Rules by what operators do: moving elements, reducing, computing layers.
std::span<const TypeRow> move_type_rules();
std::span<const TypeRow> reduce_type_rules();
std::span<const TypeRow> layer_type_rules();

/// The shape of both together; nothing where they do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// Gives every value of the graph, and of those inside it, a type: an element type, and a shape where it can be known.
/// Integers get their expression over sizes. What is known already stays, but for sizes that follow from others. Each
/// walk over one graph has a tag of its own.
void infer_aten_types(Graph& graph, std::string_view tag);

/// An expression over sizes that only the run tells gets a name of its own where one of these sizes is nowhere seen by
/// itself: PyTorch refuses such expressions.
void name_unseen_sizes(Graph& graph);

}  // namespace tonnx
