// open_node.h - what an operator's `open` sees and changes: a node of a model in which sizes that were fixed become
// open.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/op_def.h"

namespace tonnx {

/// A dimension, or a part of one that a Reshape joined from several: as it is now, and the number that the file fixes
/// it to.
struct SizePart {
  Dim now;
  Dim fixed;
};
/// The parts of one dimension, the outermost first.
using SizeParts = std::vector<SizePart>;

/// A node whose inputs have been opened. Its sizes that are constants in the file are to follow: `open` rewrites the
/// inputs and attributes that hold them, or refuses.
class OpenNode {
 public:
  explicit OpenNode(Node& node) : node_(&node) {}
  virtual ~OpenNode() = default;

  Node& node() { return *node_; }
  const Node& node() const { return *node_; }

  /// The sizes of an input now; null where they are not known.
  const Shape* shape(size_t input) const;
  /// The sizes that an input, or an output, has in the file; null where they are not known.
  const Shape* fixed_shape(size_t input) const;
  const Shape* fixed_output(size_t output = 0) const;
  /// Whether any size of the input is open.
  bool is_open(size_t input) const;
  bool is_open(const Shape* shape) const;

  /// Whether the size varies with an opened one.
  virtual bool is_open(const Dim& size) const = 0;
  /// The size that it is in the file.
  virtual Dim fixed(const Dim& size) const = 0;
  /// Whether the input depends on the data of an opened input, and not on its sizes alone.
  virtual bool depends_on_data(size_t input) const = 0;
  /// What each dimension of an input was joined from.
  virtual std::vector<SizeParts> parts(size_t input) const = 0;
  virtual void set_parts(size_t output, std::vector<SizeParts> parts) = 0;

  /// The elements of a list of integers, where they are known: an input, or an attribute of older opsets.
  std::optional<Dims> list(size_t input, std::string_view name) const;
  /// Makes these the elements of the list.
  virtual void set_list(size_t input, std::string_view name, const Dims& elements) = 0;
  /// Makes an input, which has a fixed size along an axis, as long as the opened size: by repeating what is the same
  /// along the axis, or by a longer part of what it is cut from. Refuses where neither can be. `parts` are those of the
  /// opened size, where they are known: the input is then the same for each sample that they count.
  virtual void grow(size_t input, size_t axis, const Dim& size, const SizeParts& parts = {}) = 0;
  /// Whether a Resize gives the input a size that the file fixes along this axis: the size of another tensor may be
  /// meant.
  virtual bool is_resized(size_t input, size_t axis) const = 0;
  /// Resizes such an input to that size.
  virtual void resize(size_t input, size_t axis, const Dim& size) = 0;
  /// Notes that the node gets another size along that axis than the file says, in proportion to that of its input.
  virtual void note_resized(size_t axis) = 0;
  /// Puts a Transpose in front of an input.
  virtual void transpose(size_t input, const std::vector<int64_t>& permutation) = 0;

  /// Which of several ways to open the node is meant, where its own sizes do not tell: the first way at first, and the
  /// next one where the model cannot be opened so. Nodes of the same `key` are likely to mean the same.
  virtual size_t choose(std::string_view key, size_t ways) = 0;
  /// Refuses where the axis holds samples, which do not depend on each other: the node computes across it.
  virtual void keep_apart(size_t input, size_t axis) const = 0;
  /// Whether the elements of the input follow the open sizes already, as those of a Range do whose end is a size.
  virtual bool follows_sizes(const Value* value) const = 0;
  /// A new node in front of this one, and what it gives.
  virtual Value* add(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {}) = 0;
  virtual Value* ints(std::vector<int64_t> elements, std::vector<int64_t> dims) = 0;
  /// The numbers from 0 to below `count` times `step`, in steps of `step`.
  virtual Value* count_up(const Dim& count, const Dim& step) = 0;

  /// Throws Unsupported: this node cannot follow.
  [[noreturn]] void refuse(const std::string& why) const;

 protected:
  virtual const Type* fixed_type(const Value* value) const = 0;

 private:
  Node* node_;
};

// Shared by rows.

/// A dimension of an input.
struct InputAxis {
  size_t input, axis;
};
/// Dimensions that have to be equal: those that the file fixes follow the one that is open.
void align(OpenNode& n, const std::vector<InputAxis>& places);
/// Inputs whose first dimensions are equal.
template <size_t... Inputs>
void open_first_axes(OpenNode& n) {
  align(n, {{Inputs, 0}...});
}

/// Inputs that are broadcast together.
void open_broadcast(OpenNode& n);
/// The same, but for the last two dimensions, which are those of matrices.
void open_matrices(OpenNode& n);
/// A layer that computes along the axis that `axis` names.
void open_along_axis(OpenNode& n);
/// A layer that computes over that axis and all after it.
void open_from_axis(OpenNode& n);
/// A layer whose first input has a sample in each element of its first dimension.
void open_samples(OpenNode& n);

}  // namespace tonnx
