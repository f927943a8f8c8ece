// subscript.h - the indices of x[...] in PyTorch, read and written alike.
#pragma once
#include "ops/move/rows.h"

namespace tonnx {

/// Tensors of integers, a mask being as many of them as it has dimensions, each for a dimension of its own.
struct Subscript {
  std::vector<int64_t> dims;    // that are indexed, ascending
  std::vector<Value*> indices;  // int64, one for each of them
  Shape shape;                  // to which all are broadcast
  bool adjacent = true;         // whether the dimensions stand side by side in the list, or else the result is in front
  Value* mask = nullptr;        // where there is one index only, and it is a mask: `indices` is empty
  int64_t mask_rank = 0;

  /// Where the shape of the indices stands in the result.
  size_t place() const { return adjacent && !dims.empty() ? static_cast<size_t>(dims[0]) : 0; }
  /// The dimensions that are indexed, then the others.
  std::vector<int64_t> order(int64_t rank) const;
  IntArgs sizes(OnnxBuilder& onnx) const;  // of `shape`
  /// All indices as one tensor, in which the last dimension has a place for each.
  Value* stacked(OnnxBuilder& onnx) const;
};

/// `keep_mask`: a mask that is alone stays one.
Subscript read_subscript(const AtenNode& n, OnnxBuilder& onnx, bool keep_mask);
/// The places of a mask that are true: [rank, count].
Value* true_places(OnnxBuilder& onnx, Value* mask);

}  // namespace tonnx
