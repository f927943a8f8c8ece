// open_sizes.h - makes fixed sizes of a model's inputs open, and everything in the model that follows from them.
#pragma once
#include <string>
#include <vector>

#include "convert/pipeline.h"

namespace tonnx {

/// A size that was opened.
struct OpenedSize {
  std::string name;
  int64_t fixed = 0;  // what it was in the file
  /// Whether it counts samples that do not depend on each other, as far as the graph shows it: a first dimension that
  /// no node sums over or selects from.
  bool counts_samples = false;
};

/// Makes sizes of inputs symbols; those of one name are equal. Constants that hold a size which follows from them are
/// written as arithmetic on Shape. Throws Unsupported, with the node, where something cannot follow.
std::vector<OpenedSize> open_sizes(Model& model, const std::vector<DynamicDim>& dims);

}  // namespace tonnx
