// unary.cpp - arithmetic and rounding of one tensor: Abs, Exp, Floor and their kin.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

constexpr AtenOp kAten[] = {
    {.sig = "aten::exp(Tensor self) -> Tensor", .python = "torch.exp"},
    {.sig = "aten::log(Tensor self) -> Tensor", .python = "torch.log"},
    {.sig = "aten::sqrt(Tensor self) -> Tensor", .python = "torch.sqrt"},
    {.sig = "aten::rsqrt(Tensor self) -> Tensor", .python = "torch.rsqrt"},
    {.sig = "aten::abs(Tensor self) -> Tensor", .python = "torch.abs"},
    {.sig = "aten::reciprocal(Tensor self) -> Tensor", .python = "torch.reciprocal"},
    {.sig = "aten::floor(Tensor self) -> Tensor", .python = "torch.floor"},
    {.sig = "aten::ceil(Tensor self) -> Tensor", .python = "torch.ceil"},
    {.sig = "aten::round(Tensor self) -> Tensor", .python = "torch.round"},
    {.sig = "aten::trunc(Tensor self) -> Tensor", .python = "torch.trunc"},
    {.sig = "aten::sign(Tensor self) -> Tensor", .python = "torch.sign"},
    {.sig = "aten::isnan(Tensor self) -> Tensor", .python = "torch.isnan"},
    {.sig = "aten::isinf(Tensor self) -> Tensor", .python = "torch.isinf"},
    {.sig = "aten::neg(Tensor self) -> Tensor", .python = "-"},
    {.sig = "aten::bitwise_not(Tensor self) -> Tensor", .python = "~"},
    {.sig = "aten::logical_not(Tensor self) -> Tensor", .python = "torch.logical_not"},
    {.sig = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", .python = "torch.clamp"},
};

}  // namespace

extern const OpFamily kUnaryOps;
constinit const OpFamily kUnaryOps{"unary", {}, kAten};

}  // namespace tonnx
