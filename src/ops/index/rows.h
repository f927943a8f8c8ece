// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"
#include "ops/frame/open_node.h"

namespace tonnx {

// Types of what operators give

void types_index_select(TypeNode& n);
void types_gather(TypeNode& n);
void types_take_along_dim(TypeNode& n);
void types_masked_scatter(TypeNode& n);
void types_index(TypeNode& n);
void types_nonzero(TypeNode& n);
void types_masked_select(TypeNode& n);
void types_embedding(TypeNode& n);
void types_embedding_bag(TypeNode& n);
void types_one_hot(TypeNode& n);
void types_take(TypeNode& n);
void types_nonzero_static(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_gather_elements(const NodeView& n);
Results eval_gather_nd(const NodeView& n);
Results eval_scatter_elements(const NodeView& n);
Results eval_scatter_nd(const NodeView& n);
Results eval_tensor_scatter(const NodeView& n);
Results eval_one_hot(const NodeView& n);
Results eval_non_zero(const NodeView& n);
Results eval_compress(const NodeView& n);
Results eval_reverse_sequence(const NodeView& n);

// The way back, and what raisings share, with those of other families too

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

// How nodes follow a size that becomes open

void open_gather(OpenNode& n);
void open_gather_elements(OpenNode& n);
void open_gather_nd(OpenNode& n);
void open_scatter_elements(OpenNode& n);
void open_scatter_nd(OpenNode& n);

}  // namespace tonnx
