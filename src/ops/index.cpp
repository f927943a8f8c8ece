// index.cpp - elements taken and put by index: Gather, Scatter and their kin.
#include "ops/emission.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

/// `i, :, j`: an index for each dimension, a full slice where there is none.
std::string index_text(const Emission& e) {
  std::vector<std::string> texts = e.items("indices");
  for (std::string& text : texts) {
    if (text == "None") text = ":";
  }
  while (texts.size() > 1 && texts.back() == ":") texts.pop_back();
  return join(texts);
}

std::string emit_index(const Emission& e) { return e.text("self", precedence::kAtom) + "[" + index_text(e) + "]"; }

std::string emit_index_put(const Emission& e) {
  std::vector<std::string> texts = e.items("indices");
  for (std::string& text : texts) {
    if (text == "None") text = "slice(None)";
  }
  return fmt::format("torch.index_put({}, {}, {}{})", e.text("self"), python_tuple(texts), e.text("values"),
                     e.flag("accumulate") ? ", accumulate=True" : "");
}

constexpr AtenOp kAten[] = {
    {.sig = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", .python = "torch.index_select"},
    {.sig = "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     .python = "torch.gather"},
    {.sig = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", .emit = emit_index},
    {.sig = "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", .python = "torch.scatter"},
    {.sig = "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .python = "torch.scatter"},
    {.sig = "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .python = "torch.scatter_add"},
    {.sig = "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
     .python = "torch.scatter_reduce"},
    {.sig = "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     .emit = emit_index_put},
    {.sig = "aten::nonzero(Tensor self) -> Tensor", .python = "torch.nonzero"},
};

}  // namespace

extern const OpFamily kIndexOps;
constinit const OpFamily kIndexOps{"index", {}, kAten};

}  // namespace tonnx
