// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_adaptive_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_avg_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_max_pool(const AtenNode& n, OnnxBuilder& onnx);
Values raise_adaptive_avg_pool(const AtenNode& n, OnnxBuilder& onnx);

// open_adaptive_raise.cpp
/// An adaptive pool whose sizes are only known at run time; `reduce` is ReduceMean or ReduceMax.
Value* pooled_at_run_time(const AtenNode& n, OnnxBuilder& onnx, int64_t spatial, const char* reduce);

}  // namespace tonnx
