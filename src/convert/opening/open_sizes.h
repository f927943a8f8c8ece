// open_sizes.h - makes fixed sizes of a model's inputs open, and everything in the model that follows from them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "convert/input_sizes.h"
#include "convert/judge.h"

namespace tonnx {

struct OpeningOptions {
  Judge judge;                                   // runs both models; null: small ones are computed here
  std::function<void(const std::string&)> warn;  // told what the user should know of the result
};

/// Makes sizes of inputs symbols; those of one name are equal. Constants that hold a size which follows from them are
/// written as arithmetic on Shape, and the result is compared with the model. A model of one sample that cannot follow
/// runs once for each sample. Throws Unsupported, with the node, where that cannot be either.
void open_sizes(Model& model, const std::vector<DynamicDim>& dims, const OpeningOptions& options = {});

}  // namespace tonnx
