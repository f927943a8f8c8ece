// aten_binary.cpp - PyTorch's arithmetic of two tensors as ONNX.
#include "ops/raises.h"

namespace tonnx {
namespace {

/// self + alpha * other, or self - alpha * other.
Values raise_sum(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  const DType dtype = n.output_dtype();
  Value* other = n.input_as("other", dtype);
  if (n.f("alpha") != 1) other = onnx("Mul", {other, n.input_as("alpha", dtype)});
  return onnx(op, {n.input_as("self", dtype), other});
}

}  // namespace

Values raise_add(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.output_dtype() == DType::Bool)
    return onnx("Or", {n.input_as("self", DType::Bool), n.input_as("other", DType::Bool)});
  return raise_sum(n, onnx, "Add");
}

}  // namespace tonnx
