// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

/// The type that elements are added up in, or compared, where several come to one place: what ONNX Runtime has kernels
/// for at all opsets.
DType scatter_dtype(DType dtype);

// put_raise.cpp
Values raise_index_put(const AtenNode& n, OnnxBuilder& onnx);
Values raise_masked_fill(const AtenNode& n, OnnxBuilder& onnx);
Values raise_masked_scatter(const AtenNode& n, OnnxBuilder& onnx);

// raise.cpp
Values raise_index(const AtenNode& n, OnnxBuilder& onnx);
Values raise_index_select(const AtenNode& n, OnnxBuilder& onnx);
Values raise_gather(const AtenNode& n, OnnxBuilder& onnx);
Values raise_embedding(const AtenNode& n, OnnxBuilder& onnx);
Values raise_nonzero(const AtenNode& n, OnnxBuilder& onnx);

// scatter_raise.cpp
Values raise_scatter(const AtenNode& n, OnnxBuilder& onnx);
Values raise_scatter_add(const AtenNode& n, OnnxBuilder& onnx);
Values raise_scatter_reduce(const AtenNode& n, OnnxBuilder& onnx);
Values raise_index_add(const AtenNode& n, OnnxBuilder& onnx);
Values raise_index_fill(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
