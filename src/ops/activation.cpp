// activation.cpp - activation functions: Relu and its kin.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

Values lower_relu(const OnnxNode& n, AtenBuilder& aten) { return aten("relu", n.input("X")); }

constexpr OpsetStep kReluHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 13, .adds = kBFloat16},
    {.to = 14, .adds = kAllInts},
};

constexpr OnnxOp kOnnx[] = {
    {.sig = "Relu(T X) -> T Y", .since = 1, .history = kReluHistory, .infer = infer_same_as_first, .lower = lower_relu},
};

constexpr AtenOp kAten[] = {
    {.sig = "aten::relu(Tensor self) -> Tensor", .python = "F.relu"},
};

}  // namespace

extern const OpFamily kActivationOps;
constinit const OpFamily kActivationOps{"activation", kOnnx, kAten};

}  // namespace tonnx
