// pad.cpp - tensors made larger at their edges: Pad.
#include "ops/emission.h"
#include "ops/op_def.h"

namespace tonnx {
namespace {

/// `F.pad(x, (1, 1, 0, 0), value=1.0)`
std::string emit_pad(const Emission& e) {
  std::string text = fmt::format("F.pad({}, {}", e.text("self"), python_tuple(e.items("pad")));
  if (e.has("mode")) text += ", mode=" + e.text("mode");
  if (e.has("value")) text += ", value=" + e.text("value");
  return text + ")";
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
     .emit = emit_pad},
};

}  // namespace

extern const OpFamily kPadOps;
constinit const OpFamily kPadOps{"pad", {}, kAten};

}  // namespace tonnx
