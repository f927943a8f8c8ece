// softmax.cpp - normalised exponentials: Softmax, LogSoftmax, Hardmax.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

std::string emit_softmax(const Emission& e) {
  const std::string dtype = e.has("dtype") ? ", dtype=" + e.text("dtype") : "";
  return fmt::format("F.{}({}, dim={}{})", e.signature().name, e.text("self"), e.text("dim"), dtype);
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", .emit = emit_softmax},
    {.sig = "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", .emit = emit_softmax},
};

}  // namespace

extern const OpFamily kSoftmaxOps;
constinit const OpFamily kSoftmaxOps{"softmax", {}, kAten};

}  // namespace tonnx
