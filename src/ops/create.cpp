// create.cpp - tensors made from nothing: Constant, Range, ConstantOfShape.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

/// `torch.full([2, n], 0.0, dtype=torch.float32, device=x.device)`
std::string emit_factory(const Emission& e) {
  std::vector<std::string> arguments;
  for (const Param& param : e.signature().inputs) {
    if (param.name != "device" && e.node().find_attribute(param.name) != nullptr) {
      arguments.push_back(param.keyword_only ? param.name + "=" + e.text(param.name) : e.text(param.name));
    }
  }
  if (!e.device().empty()) arguments.push_back("device=" + e.device());
  return fmt::format("torch.{}({})", e.signature().name, join(arguments));
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .emit = emit_factory},
    {.sig = "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .emit = emit_factory},
    {.sig = "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .emit = emit_factory},
    {.sig = "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .emit = emit_factory},
    {.sig = "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .emit = emit_factory},
    {.sig = "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .python = "torch.full_like"},
    {.sig = "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .python = "torch.zeros_like"},
    {.sig = "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .python = "torch.ones_like"},
};

}  // namespace

extern const OpFamily kCreateOps;
constinit const OpFamily kCreateOps{"create", {}, kAten};

}  // namespace tonnx
