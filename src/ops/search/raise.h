// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// raise.cpp
Values raise_searchsorted(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unique(const AtenNode& n, OnnxBuilder& onnx);
Values raise_unique_dim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_repeat_interleave(const AtenNode& n, OnnxBuilder& onnx);

// sort_raise.cpp
Values raise_sort(const AtenNode& n, OnnxBuilder& onnx);
Values raise_argsort(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
