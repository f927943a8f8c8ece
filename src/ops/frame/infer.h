// infer.h - what an operator's inference sees and sets: types, symbolic shapes, and integers that follow from shapes.
#pragma once
#include <utility>

#include "ops/frame/node_view.h"

namespace tonnx {

/// Gives out names for sizes that nothing is known of, and memory for constants that inference makes.
class FreshDims {
 public:
  Dim next();
  /// The name of a size that the file has: it is not given to another.
  void avoid(std::string_view name);
  /// Two sizes that cannot differ: what is written with the one may be written with the other.
  void note_equal(const Dim& a, const Dim& b);
  /// The sizes that were noted so, which are forgotten then.
  std::vector<std::pair<Dim, Dim>> take_equal() { return std::exchange(equal_, {}); }
  /// Whether the name is one that this class gives.
  static bool is_made(std::string_view name) { return number_of(name).has_value(); }
  bool take_bytes(int64_t bytes);
  /// How many names have been given: what is made after that is newer.
  int mark() const { return count_; }
  static bool is_newer(const Dim& dim, int mark);

 private:
  static std::optional<int> number_of(std::string_view name);

  int count_ = 0;
  std::vector<std::pair<Dim, Dim>> equal_;
  int64_t bytes_left_ = int64_t{1} << 28;
};

class InferNode : public NodeView {
 public:
  InferNode(Node& node, const OnnxOpEntry& entry, FreshDims& fresh) : NodeView(node, entry), fresh_(&fresh) {}

  void set(size_t output, Type type);
  void set(size_t output, DType dtype, std::optional<Shape> shape);
  /// The elements of an output, which has at most one dimension.
  void set_dims(Dims elements) { set_dims(0, std::move(elements)); }
  void set_dims(size_t output, Dims elements);
  /// Output 0 is a constant, and of its type.
  void set_constant(TensorPtr tensor);
  /// Output 0 has the elements of the input, in the same order, and another shape, which has been set: where the input
  /// is a constant, or its elements are known, so are those of the output.
  void keep_elements(std::string_view input);
  /// Whether a constant of that many bytes may be made that the file does not have. A file can ask for more than there
  /// is memory for, so all nodes of a model share an allowance.
  bool can_make(int64_t bytes) { return fresh_->take_bytes(bytes); }
  Dim fresh() { return fresh_->next(); }
  /// The operator takes no tensors in which these sizes differ: throws InvalidModel where they do, and otherwise gives
  /// the one to go on with.
  Dim same(const Dim& a, const Dim& b);
  /// The operator takes only tensors of that rank: an input of which nothing was known has so many sizes.
  void learn_rank(std::string_view input, std::optional<int64_t> rank);
  /// As many sizes that nothing is known of as the input, a list of integers, has elements; nothing where that is not
  /// known.
  std::optional<Shape> fresh_shape(std::string_view list);
  /// A size that only the run tells: what the file declares for this dimension of the output, where that is a number
  /// and the input has no other sizes that vary; otherwise a new name.
  Dim declared_or_fresh(size_t output, size_t dim, size_t rank, const Shape& input);

 private:
  FreshDims* fresh_;
};

// Shared inferences.

void infer_same_as_first(InferNode& n);  // one output, of the type of the first input
void infer_broadcast(InferNode& n);      // numpy's rule over all inputs, the element type of the first
void infer_compare(InferNode& n);        // the same, with bool
/// The shape of two broadcast together; nothing where either is unknown.
std::optional<Shape> broadcast(const std::optional<Shape>& a, const std::optional<Shape>& b,
                               FreshDims* fresh = nullptr);

}  // namespace tonnx
