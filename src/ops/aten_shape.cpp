// aten_shape.cpp - PyTorch's changes of shape as ONNX.
#include "ops/raises.h"

namespace tonnx {

/// The elements in the same order, in the shape that PyTorch says: view, reshape, flatten, unflatten ...
Values raise_reshaped(const AtenNode& n, OnnxBuilder& onnx) {
  for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
  return onnx.reshape(n.input("self"), n.output_shape());
}

}  // namespace tonnx
