// shape.cpp - changes of the shape: Reshape, Transpose, Expand and their kin.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

/// `x.reshape(2, -1)`: the sizes as arguments, not as a list.
std::string emit_sizes(const Emission& e) {
  const std::string& list = e.signature().inputs[1].name;
  return fmt::format("{}.{}({})", e.text("self", precedence::kAtom), e.signature().name, join(e.items(list)));
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", .emit = emit_sizes},
    {.sig = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", .emit = emit_sizes},
    {.sig = "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", .python = ".transpose"},
    {.sig = "aten::t(Tensor(a) self) -> Tensor(a)", .python = ".t"},
    {.sig = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", .python = ".unsqueeze"},
    {.sig = "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", .python = ".squeeze"},
    {.sig = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", .python = ".squeeze"},
    {.sig = "aten::squeeze(Tensor(a) self) -> Tensor(a)", .python = ".squeeze"},
    {.sig = "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
     .python = ".flatten"},
    {.sig = "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", .emit = emit_sizes},
    {.sig = "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", .emit = emit_sizes},
    {.sig = "aten::flip(Tensor self, int[] dims) -> Tensor", .python = ".flip"},
    {.sig = "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", .python = ".contiguous"},
};

}  // namespace

extern const OpFamily kShapeOps;
constinit const OpFamily kShapeOps{"shape", {}, kAten};

}  // namespace tonnx
