// scan.cpp - running sums and products along one axis: CumSum, CumProd.
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/move/rows.h"
#include "ops/reduce/run_time_axis.h"
#include "ops/scan/rows.h"

namespace tonnx {
namespace {

IntArg dim_of(const OnnxNode& n) {
  const auto rank = n.find_rank("x");
  if (n.find_const_ints("axis") && rank) return NodeView::normalized(n.const_int("axis"), *rank);
  if (rank == 1) return 0;
  return n.int_arg("axis");
}

/// Each element moves up by one, and `first` comes before them. Not y - x or y / x, which fail at infinity and at 0.
Value* shift(AtenBuilder& aten, Value* y, const IntArg& dim, const char* first) {
  if (dim.value == nullptr) {
    Value* head = aten(first, aten("slice.Tensor", y, dim, nullptr, 1));
    return aten("cat", std::vector<Value*>{head, aten("slice.Tensor", y, dim, nullptr, -1)}, dim);
  }
  Value* size = aten("sym_size.int", y, dim);
  Value* head = aten(first, aten("narrow", y, dim, 0, 1));
  return aten("cat", std::vector<Value*>{head, aten("narrow", y, dim, 0, aten.sub(size, 1))}, dim);
}

/// ONNX can exclude the element itself and run backwards; aten can do neither.
Values lower_cumulative(const OnnxNode& n, AtenBuilder& aten, const char* op, const char* neutral) {
  const DType dtype = n.dtype("x");
  const DType kernel = kernel_type(dtype);
  const IntArg dim = dim_of(n);
  const bool reverse = n.flag("reverse");
  Value* x = n.input("x");
  if (reverse) x = aten("flip", cast(aten, x, dtype, kernel), IntArgs{dim});
  const bool widens = is_integer(kernel) && kernel != DType::Int64;  // aten sums up small integers in int64
  Value* y = aten(op, x, dim, Kw{"dtype", widens ? Arg(kernel) : Arg(nullptr)});
  if (n.flag("exclusive")) y = shift(aten, y, dim, neutral);
  if (reverse) y = aten("flip", y, IntArgs{dim});
  return cast(aten, y, kernel, dtype);
}

Values lower_cum_sum(const OnnxNode& n, AtenBuilder& aten) { return lower_cumulative(n, aten, "cumsum", "zeros_like"); }
Values lower_cum_prod(const OnnxNode& n, AtenBuilder& aten) {
  return lower_cumulative(n, aten, "cumprod", "ones_like");
}

constexpr OpsetStep kCumSumHistory[] = {
    {.to = 14, .adds = dtype_set(DType::BFloat16, DType::Float16)},
};

constexpr OnnxOp kScanOnnx[] = {
    {.sig = "CumSum(T x, T2 axis, *, int exclusive=0, int reverse=0) -> T y",
     .since = 11,
     .runtime = {kWideInts},
     .history = kCumSumHistory,
     .infer = infer_same_as_first,
     .open = open_along_axis,
     .eval = eval_cum_sum,
     .lower = lower_cum_sum,
     .expand = expand_cumulative},
    {.sig = "CumProd(T x, T2 axis, *, int exclusive=0, int reverse=0) -> T y",
     .since = 26,
     .runtime = {kWideInts},
     .infer = infer_same_as_first,
     .open = open_along_axis,
     .eval = eval_cum_prod,
     .lower = lower_cum_prod,
     .expand = expand_cumulative},
};

constexpr AtenOp kScanAten[] = {
    {.sig = "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .types = types_accumulate,
     .out_dtype = true,
     .python = "torch.cumsum",
     .raise = raise_cumsum,
     .raise_complex = raise_each_part},
    {.sig = "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .types = types_accumulate,
     .out_dtype = true,
     .python = "torch.cumprod",
     .raise = raise_cumprod},
    {.sig = "aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
     .types = types_narrow,
     .view = ViewRule::Narrow,
     .python = ".narrow",
     .raise = raise_narrow},
};

}  // namespace

extern const OpFamily kScanOps;
constinit const OpFamily kScanOps{"scan", kScanOnnx, kScanAten};

}  // namespace tonnx
