// cast.cpp - changes of the element type.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

constexpr AtenOp kAten[] = {
    {.sig = "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     .python = ".to"},
};

}  // namespace

extern const OpFamily kCastOps;
constinit const OpFamily kCastOps{"cast", {}, kAten};

}  // namespace tonnx
