// runtime_types.h - the element types that operators of ONNX can be computed with.
#pragma once
#include <optional>
#include <string_view>

#include "ops/frame/op_def.h"

namespace tonnx {

/// How a node is written whose element type the target opset, or the CPU kernels of ONNX Runtime, do not take: in a
/// wider type that gives the same values.
struct KernelType {
  DType from, to;
  size_t first_input;  // inputs before it are of other types
  bool gives_same;     // whether output 0 is of the type of the inputs
};

/// Nothing where the node can be written as it is, or no exact type is known.
std::optional<KernelType> find_kernel_type(std::string_view op, const std::vector<Value*>& inputs,
                                           int64_t target_opset);

/// The type that a raising computes in where the runtime has no kernel for a type, at any opset.
DType kernel_dtype(std::string_view op, DType dtype);

}  // namespace tonnx
