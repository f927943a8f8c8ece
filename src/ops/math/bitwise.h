// bitwise.h - operations on bits, in operators of before opset 18.
#pragma once
#include "ops/frame/node_view.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

/// `logic` is And, Or or Xor.
bool bitwise_in_older(const NodeView& n, OnnxEdit& edit, std::string_view logic);
template <FixedText Logic>
bool bitwise_in_older(const NodeView& n, OnnxEdit& edit) {
  return bitwise_in_older(n, edit, Logic.value);
}
bool bitwise_not_in_older(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
