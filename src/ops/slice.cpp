// slice.cpp - parts of a tensor along its axes: Slice.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

/// `x[:, 1:3]` needs no more than the number of dimensions in front; formatters put spaces around the colon between
/// expressions.
std::string emit_slice(const Emission& e) {
  const int64_t dim = e.find_int("dim").value_or(0);
  std::string start = e.has("start") ? e.text("start") : "";
  std::string end = e.has("end") ? e.text("end") : "";
  if (start == "0") start.clear();
  if (end == std::to_string(INT64_MAX)) end.clear();
  const std::string step = e.has("step") ? e.text("step") : "";
  const auto is_simple = [](const std::string& text) { return text.find(' ') == std::string::npos; };
  const std::string colon = is_simple(start) && is_simple(end) ? ":" : " : ";
  std::string range = start + (start.empty() ? std::string(colon == ":" ? ":" : ": ") : colon) + end;
  if (end.empty()) range = start + (is_simple(start) ? ":" : " :");
  if (!step.empty()) range += ":" + step;
  std::string text = e.text("self", precedence::kAtom) + "[";
  if (dim < 0) {
    text += "...";
    text += ", " + range;
    for (int64_t d = dim + 1; d < 0; ++d) text += ", :";
  } else {
    for (int64_t d = 0; d < dim; ++d) text += ":, ";
    text += range;
  }
  return text + "]";
}

std::string emit_select(const Emission& e) {
  std::string text = e.text("self", precedence::kAtom) + "[";
  for (int64_t d = 0; d < e.find_int("dim").value_or(0); ++d) text += ":, ";
  return text + e.text("index") + "]";
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
     .emit = emit_slice},
    {.sig = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", .emit = emit_select},
};

}  // namespace

extern const OpFamily kSliceOps;
constinit const OpFamily kSliceOps{"slice", {}, kAten};

}  // namespace tonnx
