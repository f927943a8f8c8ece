// compare.cpp - comparisons, logic on booleans, and the choice between two tensors.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

constexpr AtenOp kAten[] = {
    {.sig = "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor", .python = "=="},
    {.sig = "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor", .python = "=="},
    {.sig = "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor", .python = "!="},
    {.sig = "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor", .python = "!="},
    {.sig = "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor", .python = "<"},
    {.sig = "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor", .python = "<"},
    {.sig = "aten::le.Tensor(Tensor self, Tensor other) -> Tensor", .python = "<="},
    {.sig = "aten::le.Scalar(Tensor self, Scalar other) -> Tensor", .python = "<="},
    {.sig = "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor", .python = ">"},
    {.sig = "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor", .python = ">"},
    {.sig = "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor", .python = ">="},
    {.sig = "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor", .python = ">="},
    {.sig = "aten::logical_and(Tensor self, Tensor other) -> Tensor", .python = "torch.logical_and"},
    {.sig = "aten::logical_or(Tensor self, Tensor other) -> Tensor", .python = "torch.logical_or"},
    {.sig = "aten::logical_xor(Tensor self, Tensor other) -> Tensor", .python = "torch.logical_xor"},
    {.sig = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", .python = "torch.where"},
    {.sig = "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", .python = "torch.where"},
    {.sig = "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", .python = "torch.where"},
    {.sig = "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", .python = ".masked_fill"},
};

}  // namespace

extern const OpFamily kCompareOps;
constinit const OpFamily kCompareOps{"compare", {}, kAten};

}  // namespace tonnx
