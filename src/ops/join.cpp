// join.cpp - tensors put together and taken apart: Concat, Split.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

constexpr AtenOp kAten[] = {
    {.sig = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor", .python = "torch.cat"},
    {.sig = "aten::stack(Tensor[] tensors, int dim=0) -> Tensor", .python = "torch.stack"},
    {.sig = "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
     .python = "torch.split"},
    {.sig = "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", .python = "torch.unbind"},
};

}  // namespace

extern const OpFamily kJoinOps;
constinit const OpFamily kJoinOps{"join", {}, kAten};

}  // namespace tonnx
