// evaluate.h - values of nodes whose inputs are constants.
#pragma once
#include "ops/frame/infer.h"

namespace tonnx {

/// How much more than its inputs a value that is computed may take.
struct FoldLimits {
  double times = 8;                  // as much as the inputs
  int64_t bytes = int64_t{1} << 20;  // or so many bytes
  bool keeps_weights = false;  // what is computed of weights of modules is not: each keeps its name, shape and values
};

/// `layer.0.gamma`: a weight of the file that is called as one of a module in PyTorch.
bool is_named_weight(const Value& value);

/// The same, or one that was only turned, reshaped or brought to another type since.
bool is_weight_of_module(const Value* value);

/// Gives the outputs of a node that was inferred their constants, where all its inputs are constants. What is made of
/// weights stays trainable. A small file does not become a large one.
void fold_node(Node& node, const OnnxOpEntry& entry, FreshDims& fresh, const FoldLimits& limits = {});

/// The weight that a value was computed from, and that nobody else uses, so that the value can take its name; the value
/// itself where there is none.
const Value* origin_of_weight(const Value* value);

}  // namespace tonnx
