// kernel_type.h - the element type that PyTorch computes in, where it has no kernels for the type of the tensor.
#pragma once
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

/// PyTorch stores uint16, uint32 and uint64, but hardly computes with them. A wider signed type holds the same values;
/// uint64 keeps its bits in int64, which is exact for moving, adding and multiplying.
inline DType kernel_type(DType dtype) {
  if (dtype == DType::UInt16) return DType::Int32;
  return dtype == DType::UInt32 || dtype == DType::UInt64 ? DType::Int64 : dtype;
}

/// `x` in another element type; nothing happens where it is the same.
inline Value* cast(AtenBuilder& aten, Value* x, DType from, DType to) {
  return from == to ? x : aten("to.dtype", x, to);
}

/// `x[:, index]`: torch.index_select takes no vectors of the types that PyTorch hardly computes with.
inline Value* selected_along(AtenBuilder& aten, Value* x, DType dtype, int64_t dim, Value* index) {
  if (kernel_type(dtype) == dtype || dim < 0) return aten("index_select", x, dim, index);
  std::vector<Value*> at(static_cast<size_t>(dim), nullptr);
  at.push_back(index);
  return aten("index.Tensor", x, at);
}

/// The bits of uint64 in int64, turned so that they are in the order of uint64; and the other way. Others stay as they
/// are.
inline Value* reordered(AtenBuilder& aten, Value* x, DType dtype) {
  return dtype == DType::UInt64 ? aten("bitwise_xor.Scalar", x, INT64_MIN) : x;
}

}  // namespace tonnx
