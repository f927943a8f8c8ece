// arg_reduce.cpp - where along an axis the greatest or the least element is: ArgMax, ArgMin.
#include <algorithm>

#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/reduce/rows.h"

namespace tonnx {
namespace {

/// A scalar counts as a tensor of one dimension here, in ONNX Runtime as in PyTorch.
int64_t axis_of(const NodeView& n, int64_t rank) {
  return NodeView::normalized(n.i("axis"), std::max<int64_t>(rank, 1));
}

void infer_arg_reduce(InferNode& n) {
  const Shape* shape = n.find_shape("data");
  if (shape == nullptr) return n.set(0, DType::Int64, std::nullopt);
  const auto axis = static_cast<size_t>(axis_of(n, static_cast<int64_t>(shape->size())));
  Shape result = *shape;
  if (n.flag("keepdims") && !result.empty()) {
    result[axis] = 1;
  } else if (!result.empty()) {
    result.erase(result.begin() + static_cast<int64_t>(axis));
  }
  n.set(0, DType::Int64, std::move(result));
}

/// Both give the first of equal elements; the last one is the first from behind.
template <FixedText Op>
Values lower_arg_reduce(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("data");
  Value* x = reordered(aten, cast(aten, n.input("data"), dtype, kernel_type(dtype)), dtype);
  const bool keep = n.flag("keepdims");
  const auto rank = n.find_rank("data");
  const int64_t dim = rank ? axis_of(n, *rank) : n.i("axis");
  if (!n.flag("select_last_index")) return aten(Op.value, x, dim, keep);
  Value* from_behind = aten(Op.value, aten("flip", x, IntArgs{IntArg(dim)}), dim, keep);
  if (rank == 0) return from_behind;
  const IntArg last = aten.sub(rank ? n.size("data", dim) : aten.size(x, dim), 1);
  return aten("rsub.Scalar", from_behind, last);
}

void down_axis_from_front(OnnxEdit& edit) {
  const int64_t axis = edit.i("axis", 0);
  if (axis >= 0) return;
  const auto rank = edit.rank(0);
  if (!rank) edit.cannot("opset 10 has no negative axis, and the rank of its input is not known");
  edit.node().set_attribute("axis", NodeView::normalized(axis, *rank));
}

constexpr OpsetStep kArgHistory[] = {
    {.to = 11, .down = down_axis_from_front},
    {.to = 12, .down = down_require_default<"select_last_index", 0>},
    {.to = 13, .adds = kBFloat16},
};

constexpr OnnxOp kArgReduceOnnx[] = {
    {.sig = "ArgMax(T data, *, int axis=0, int keepdims=1, int select_last_index=0) -> tensor(int64) reduced",
     .since = 1,
     .runtime = {kByteInts, 0, false},
     .history = kArgHistory,
     .infer = infer_arg_reduce,
     .eval = eval_arg_max,
     .lower = lower_arg_reduce<"argmax">},
    {.sig = "ArgMin(T data, *, int axis=0, int keepdims=1, int select_last_index=0) -> tensor(int64) reduced",
     .since = 1,
     .runtime = {kByteInts, 0, false},
     .history = kArgHistory,
     .infer = infer_arg_reduce,
     .eval = eval_arg_min,
     .lower = lower_arg_reduce<"argmin">},
};

constexpr AtenOp kArgReduceAten[] = {
    {.sig = "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
     .types = types_place,
     .python = ".argmax",
     .raise = raise_arg_extreme},
    {.sig = "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
     .types = types_place,
     .python = ".argmin",
     .raise = raise_arg_extreme},
};

}  // namespace

extern const OpFamily kArgReduceOps;
constinit const OpFamily kArgReduceOps{"arg_reduce", kArgReduceOnnx, kArgReduceAten};

}  // namespace tonnx
