// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/runtime_types.h"

namespace tonnx {

// Types of what operators give

void types_slice(TypeNode& n);
void types_narrow(TypeNode& n);
void types_select(TypeNode& n);
void types_diagonal(TypeNode& n);
void types_repeat_interleave(TypeNode& n);
void types_pad(TypeNode& n);
void types_pixel_shuffle(TypeNode& n);
void types_pixel_unshuffle(TypeNode& n);
void types_split(TypeNode& n);
void types_split_with_sizes(TypeNode& n);
void types_tensor_split(TypeNode& n);
void types_split_at(TypeNode& n);
void types_chunk(TypeNode& n);
void types_unbind(TypeNode& n);
void types_cat(TypeNode& n);
void types_stack(TypeNode& n);
void types_hstack(TypeNode& n);
void types_vstack(TypeNode& n);
void types_dstack(TypeNode& n);
void types_column_stack(TypeNode& n);
void types_diag_embed(TypeNode& n);
void types_diag(TypeNode& n);
void types_trace(TypeNode& n);
void types_linalg_diagonal(TypeNode& n);
void types_diagflat(TypeNode& n);
void types_strided(TypeNode& n);
void types_block_diag(TypeNode& n);
void types_cartesian_prod(TypeNode& n);
void types_combinations(TypeNode& n);
void types_padding(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

// eval.cpp
Results eval_same_elements(const NodeView& n);  // Reshape and its kin: the first input in the shape of the output
Results eval_transpose(const NodeView& n);
Results eval_expand(const NodeView& n);
Results eval_tile(const NodeView& n);
Results eval_slice(const NodeView& n);
Results eval_split(const NodeView& n);
Results eval_concat(const NodeView& n);
Results eval_gather(const NodeView& n);
Results eval_pad(const NodeView& n);
Results eval_constant_of_shape(const NodeView& n);
Results eval_range(const NodeView& n);

// diagonal_eval.cpp
Results eval_eye_like(const NodeView& n);
Results eval_trilu(const NodeView& n);

// space_eval.cpp
Results eval_depth_to_space(const NodeView& n);
Results eval_space_to_depth(const NodeView& n);
Results eval_center_crop_pad(const NodeView& n);

// The way back, and what raisings share, with those of other families too

/// The shape of the ONNX tensor that stands for an aten tensor: complex numbers are pairs.
Shape onnx_shape(const Type& aten);

/// One node of an operator that only moves elements, or compares and counts them: in the type that has kernels, and
/// back. The inputs before `others` are the data.
Value* in_kernel_dtype(OnnxBuilder& onnx, std::string_view op, std::vector<Value*> data,
                       const std::vector<Value*>& others = {}, std::vector<Attribute> attributes = {});
/// Where, for data of any type.
Value* pick(OnnxBuilder& onnx, Value* condition, Value* a, Value* b);
/// Expand, for data of any type.
Value* broadcast(OnnxBuilder& onnx, Value* x, const Shape& shape);
Value* broadcast(OnnxBuilder& onnx, Value* x, const IntArgs& sizes);
/// The shape that tensors of these shapes are broadcast to, as far as it is known.
Shape broadcast_shape(const Shape& a, const Shape& b);

/// One that has at least one dimension.
Value* at_least_1d(OnnxBuilder& onnx, Value* x);
/// All elements in one dimension.
Value* flat(OnnxBuilder& onnx, Value* x);
/// 0, 1 ... behind that axis of a tensor of that rank: [1, n, 1, 1]. A constant where the size is one.
Value* range_on(OnnxBuilder& onnx, const IntArg& size, int64_t axis, int64_t rank);
/// The order of axes that brings one of them to another place.
std::vector<int64_t> moved_axis(int64_t rank, int64_t from, int64_t to);
std::vector<int64_t> inverted(const std::vector<int64_t>& order);
/// A whole tensor of one number.
Value* filled(OnnxBuilder& onnx, const IntArgs& sizes, DType dtype, double value);
/// Whether the number is one of a size that is known, and how many elements there are.
std::optional<int64_t> element_count(const Shape& shape);
/// How many of the last axis of `edges`, which is sorted, lie before each of `values`; all of them where it is NaN.
Value* count_before(OnnxBuilder& onnx, Value* edges, Value* values, bool with_equal);
/// Refuses an operator's form that ONNX has since that opset only.
void require_opset(const AtenNode& n, const OnnxBuilder& onnx, int64_t since, const char* what);

// diagonal_raise.cpp
Values raise_tril(const AtenNode& n, OnnxBuilder& onnx);
Values raise_triu(const AtenNode& n, OnnxBuilder& onnx);

// join_raise.cpp
Values raise_cat(const AtenNode& n, OnnxBuilder& onnx);
Values raise_stack(const AtenNode& n, OnnxBuilder& onnx);

// pad_raise.cpp
Values raise_constant_pad(const AtenNode& n, OnnxBuilder& onnx);
Values raise_pad(const AtenNode& n, OnnxBuilder& onnx);
Values raise_pixel_shuffle(const AtenNode& n, OnnxBuilder& onnx);
Values raise_pixel_unshuffle(const AtenNode& n, OnnxBuilder& onnx);

// slice_raise.cpp
Values raise_slice(const AtenNode& n, OnnxBuilder& onnx);
Values raise_select(const AtenNode& n, OnnxBuilder& onnx);
Values raise_narrow(const AtenNode& n, OnnxBuilder& onnx);
Values raise_split_with_sizes(const AtenNode& n, OnnxBuilder& onnx);
Values raise_split(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unbind(const AtenNode& n, OnnxBuilder& onnx);

// Operators in older ones (OnnxOp::in_older)

bool trilu_in_older(const NodeView& n, OnnxEdit& edit);

// How nodes follow a size that becomes open

void open_concat(OpenNode& n);
void open_split(OpenNode& n);
void open_slice(OpenNode& n);

}  // namespace tonnx
