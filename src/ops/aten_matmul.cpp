// aten_matmul.cpp - PyTorch's matrix products as ONNX.
#include "ops/raises.h"

namespace tonnx {

Values raise_linear(const AtenNode& n, OnnxBuilder& onnx) {
  Value *x = n.input("input"), *weight = n.input("weight"), *bias = n.find_input("bias");
  if (n.rank("input") == 2 && n.rank("weight") == 2) return onnx("Gemm", {x, weight, bias}, {{"transB", int64_t{1}}});
  if (n.rank("weight") == 2) weight = onnx.transpose(weight, {1, 0});
  Value* y = onnx("MatMul", {x, weight});
  return bias ? onnx("Add", {y, bias}) : y;
}

}  // namespace tonnx
