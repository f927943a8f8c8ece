// bitwise.h - operations on bits, in operators of before opset 18.
#pragma once
#include "ops/frame/node_view.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

/// `logic` is And, Or or Xor.
bool older_bitwise(const NodeView& n, OnnxEdit& edit, std::string_view logic);
template <FixedText Logic>
bool older_bitwise(const NodeView& n, OnnxEdit& edit) {
  return older_bitwise(n, edit, Logic.value);
}
bool older_bitwise_not(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
