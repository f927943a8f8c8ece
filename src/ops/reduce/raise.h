// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_reduction(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_reduce(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_reduction(n, onnx, Op.value);
}
/// Along axes that only the run tells.
Values raise_reduced(const AtenNode& n, OnnxBuilder& onnx);
Values raise_mean(const AtenNode& n, OnnxBuilder& onnx);
Values raise_any(const AtenNode& n, OnnxBuilder& onnx);
Values raise_all(const AtenNode& n, OnnxBuilder& onnx);
Values raise_logsumexp(const AtenNode& n, OnnxBuilder& onnx);
Values raise_vector_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_arg_extreme(const AtenNode& n, OnnxBuilder& onnx);
Values raise_extreme_dim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_aminmax(const AtenNode& n, OnnxBuilder& onnx);
Values raise_var(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
