// binary.cpp - arithmetic of two tensors with broadcasting: Add, Mul, Pow and their kin.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

std::string emit_rsub(const Emission& e) {
  return "(" + e.text("other", precedence::kSum) + " - " + e.text("self", precedence::kSum + 1) + ")";
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", .python = "+"},
    {.sig = "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", .python = "+"},
    {.sig = "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", .python = "-"},
    {.sig = "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", .python = "-"},
    {.sig = "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", .emit = emit_rsub},
    {.sig = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", .python = "*"},
    {.sig = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor", .python = "*"},
    {.sig = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor", .python = "/"},
    {.sig = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor", .python = "/"},
    {.sig = "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", .python = "torch.div"},
    {.sig = "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", .python = "torch.div"},
    {.sig = "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", .python = "torch.pow"},
    {.sig = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", .python = ".pow"},
    {.sig = "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor", .python = "torch.remainder"},
    {.sig = "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor", .python = "torch.remainder"},
    {.sig = "aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor", .python = "torch.fmod"},
    {.sig = "aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor", .python = "torch.fmod"},
    {.sig = "aten::maximum(Tensor self, Tensor other) -> Tensor", .python = "torch.maximum"},
    {.sig = "aten::minimum(Tensor self, Tensor other) -> Tensor", .python = "torch.minimum"},
    {.sig = "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", .python = "&"},
    {.sig = "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", .python = "|"},
    {.sig = "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", .python = "^"},
};

}  // namespace

extern const OpFamily kBinaryOps;
constinit const OpFamily kBinaryOps{"binary", {}, kAten};

}  // namespace tonnx
