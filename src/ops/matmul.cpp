// matmul.cpp - matrix products: MatMul, Gemm, Einsum.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

/// The constant behind a weight, and whether it is transposed on the way.
std::pair<Value*, bool> constant_behind(Value* value) {
  if (value == nullptr || value->constant) return {value, false};
  const Node* maker = value->producer;
  const bool turns = maker != nullptr && maker->domain == Symbol("aten") && maker->op == Symbol("t") && maker->input(0)->constant;
  return turns ? std::pair(maker->input(0), true) : std::pair<Value*, bool>(nullptr, false);
}

std::optional<ModuleSpec> module_linear(const Emission& e) {
  const auto [weight, transposed] = constant_behind(e.value("weight"));
  Value* bias = e.value("bias");
  if (weight == nullptr || weight->constant->dims.size() != 2 || (bias && !bias->constant)) return std::nullopt;
  std::vector<int64_t> dims = weight->constant->dims;
  if (transposed) std::swap(dims[0], dims[1]);
  ModuleSpec spec{.type = "nn.Linear", .inputs = {"input"}, .short_name = "fc"};
  spec.arguments = fmt::format("{}, {}{}", dims[1], dims[0], bias ? "" : ", bias=False");
  spec.weights.push_back({"weight", weight, transposed});
  if (bias) spec.weights.push_back({"bias", bias});
  return spec;
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::matmul(Tensor self, Tensor other) -> Tensor", .python = "@"},
    {.sig = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
     .python = "F.linear", .module = module_linear},
};

}  // namespace

extern const OpFamily kMatMulOps;
constinit const OpFamily kMatMulOps{"matmul", {}, kAten};

}  // namespace tonnx
