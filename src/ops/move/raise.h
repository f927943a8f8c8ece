// raise.h - what raisings that move elements around share.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/runtime_types.h"

namespace tonnx {

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

}  // namespace tonnx
