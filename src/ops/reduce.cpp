// reduce.cpp - reductions along axes: ReduceSum, ArgMax and their kin.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

constexpr AtenOp kAten[] = {
    {.sig = "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .python = ".sum"},
    {.sig = "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", .python = ".sum"},
    {.sig = "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .python = ".mean"},
    {.sig = "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", .python = ".mean"},
    {.sig = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", .python = "torch.amax"},
    {.sig = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", .python = "torch.amin"},
    {.sig = "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .python = ".prod"},
    {.sig = "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", .python = ".prod"},
    {.sig = "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", .python = "torch.logsumexp"},
    {.sig = "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", .python = "torch.argmax"},
    {.sig = "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", .python = "torch.argmin"},
    {.sig = "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", .python = ".any"},
    {.sig = "aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", .python = ".all"},
};

}  // namespace

extern const OpFamily kReduceOps;
constinit const OpFamily kReduceOps{"reduce", {}, kAten};

}  // namespace tonnx
