// norms.h - what the recognition of normalised layers and of normalised channels share.
#pragma once
#include "passes/frame/onnx_match.h"

namespace tonnx {

/// (x - mean(x)) / sqrt(mean((x - mean(x)) ^ 2) + epsilon), over the axes from `axis` to the last one.
struct Normalised {
  Value* x;
  int64_t axis;
  double epsilon;
};
std::optional<Normalised> find_normalised(const Node& node);

/// The operand of a sum or product that a node of an operator makes for it alone, and the other operand.
struct Affine {
  Node* norm;
  Value* constant;
};
std::optional<Affine> find_affine(const Node& node, Symbol op, Symbol norm_op);

}  // namespace tonnx
