// size_node.h - what an operator's `sizes` sees: a node, some of whose sizes have to be equal at every run.
#pragma once
#include <functional>

#include "ir/graph.h"
#include "ops/frame/node_facts.h"

namespace tonnx {

class SizeNode {
 public:
  using Equal = std::function<void(const Dim&, const Dim&)>;
  /// `equal` is told each pair of sizes.
  SizeNode(const Node& node, Equal equal) : node_(&node), equal_(std::move(equal)) {}

  const Node& node() const { return *node_; }
  /// Null where the shape is not known.
  const Shape* shape(size_t input) const;
  /// One size of an input, counted from the end where `axis` is negative; null where it is not known.
  const Dim* size(size_t input, int64_t axis) const;
  /// Says nothing where one of both is not known.
  void equal(const Dim* a, const Dim* b) const;

 private:
  const Node* node_;
  Equal equal_;
};

/// The columns of the first input are the rows of the matrix at `Weight`.
template <size_t Weight>
void sizes_of_product(SizeNode& n) {
  const Shape* weight = n.shape(Weight);
  if (weight != nullptr) n.equal(n.size(0, -1), n.size(Weight, weight->size() == 1 ? -1 : -2));
}
/// The same of matrices that transA and transB turn around.
template <size_t Weight>
void sizes_of_gemm(SizeNode& n) {
  const bool turns_a = int_of(n.node(), "transA").value_or(0) != 0,
             turns_b = int_of(n.node(), "transB").value_or(0) != 0;
  n.equal(n.size(0, turns_a ? -2 : -1), n.size(Weight, turns_b ? -1 : -2));
}
/// A convolution with the weight at `Weight`.
template <size_t Weight>
void sizes_of_conv(SizeNode& n) {
  const Dim* channels = n.size(Weight, 1);
  if (channels == nullptr) return;
  const Dim all = *channels * Dim(int_of(n.node(), "group").value_or(1));
  n.equal(n.size(0, 1), &all);
}
/// The first size of the second input is the number of channels.
void sizes_of_channels(SizeNode& n);
/// The last sizes of the first two inputs are equal.
void sizes_of_last_axis(SizeNode& n);
/// RNN, GRU and LSTM.
void sizes_of_recurrent(SizeNode& n);
/// As many elements come out as go in.
void sizes_of_elements(SizeNode& n);
/// All sizes but those along `axis`.
void sizes_of_joined(SizeNode& n);

}  // namespace tonnx
