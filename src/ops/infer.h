// infer.h - what an operator's inference sees and sets: types, symbolic shapes, and integers that follow from shapes.
#pragma once
#include "ops/node_view.h"

namespace tonnx {

/// Gives out names for sizes that nothing is known of.
class FreshDims {
 public:
  Dim next() { return Dim::symbol("u" + std::to_string(count_++)); }

 private:
  int count_ = 0;
};

class InferNode : public NodeView {
 public:
  InferNode(Node& node, const OnnxOpEntry& entry, FreshDims& fresh) : NodeView(node, entry), fresh_(&fresh) {}

  void set(size_t output, Type type);
  void set(size_t output, DType dtype, std::optional<Shape> shape) { set(output, Type::tensor(dtype, std::move(shape))); }
  /// The elements of output 0, which has at most one dimension.
  void set_dims(std::vector<Dim> elements);
  Dim fresh() { return fresh_->next(); }
  /// A size that only the run tells: what the file declares for this dimension of the output, where that is a number and
  /// the input has no other sizes that vary; otherwise a new name.
  Dim declared_or_fresh(size_t output, size_t dim, size_t rank, const Shape& input);

 private:
  FreshDims* fresh_;
};

// Shared inferences.

void infer_same_as_first(InferNode& n);  // one output, of the type of the first input
void infer_broadcast(InferNode& n);      // numpy's rule over all inputs, the element type of the first
void infer_compare(InferNode& n);        // the same, with bool
/// The shape of two broadcast together; nothing where either is unknown.
std::optional<Shape> broadcast(const std::optional<Shape>& a, const std::optional<Shape>& b, FreshDims* fresh = nullptr);

}  // namespace tonnx
