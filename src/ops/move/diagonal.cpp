// diagonal.cpp - matrices by their diagonals: EyeLike, Trilu.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

/// A diagonal that is out of sight either way: kernels add it to numbers of rows.
int64_t in_sight(int64_t k) { return std::max<int64_t>(-INT32_MAX, std::min<int64_t>(k, INT32_MAX)); }

void infer_eye_like(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  require(shape == nullptr || shape->size() == 2, "the input has {} dimensions, and not two",
          shape ? shape->size() : 0);
  n.set(0, n.find_dtype("dtype").value_or(n.dtype("input")), shape ? *shape : Shape{n.fresh(), n.fresh()});
}

Values lower_eye_like(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.find_dtype("dtype").value_or(n.dtype("input"));
  const DType made = kernel_type(dtype);
  const int64_t k = in_sight(n.i("k"));
  const IntArg rows = n.size("input", 0), columns = n.size("input", 1);
  n.input("input");
  Value* y = nullptr;
  if (k == 0) {
    y = aten("eye.m", rows, columns, Kw{"dtype", made});
  } else {
    y = aten("triu", aten("tril", aten("ones", IntArgs{rows, columns}, Kw{"dtype", made}), k), k);
  }
  return cast(aten, y, made, dtype);
}

Values lower_trilu(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("input"), computed = kernel_type(dtype);
  IntArg k = n.has("k") ? n.int_arg("k") : IntArg(0);
  k.number = in_sight(k.number);
  Value* x = cast(aten, n.input("input"), dtype, computed);
  return cast(aten, aten(n.flag("upper") ? "triu" : "tril", x, k), computed, dtype);
}

constexpr OpsetStep kEyeLikeHistory[] = {{.to = 22, .adds = kBFloat16}};

constexpr OnnxOp kDiagonalOnnx[] = {
    {.sig = "EyeLike(T1 input, *, int? dtype, int k=0) -> T2 output",
     .since = 9,
     .history = kEyeLikeHistory,
     .infer = infer_eye_like,
     .eval = eval_eye_like,
     .lower = lower_eye_like},
    {.sig = "Trilu(T input, I? k, *, int upper=1) -> T output",
     .since = 14,
     .runtime = {kWideInts | kBool},
     .infer = infer_same_as_first,
     .eval = eval_trilu,
     .lower = lower_trilu,
     .in_older = trilu_in_older},
};

constexpr AtenOp kDiagonalAten[] = {
    {.sig = "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
     .types = types_as_self,
     .python = ".tril",
     .raise = raise_tril,
     .raise_complex = raise_each_part},
    {.sig = "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
     .types = types_as_self,
     .python = ".triu",
     .raise = raise_triu,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kDiagonalOps;
constinit const OpFamily kDiagonalOps{"diagonal", kDiagonalOnnx, kDiagonalAten};

}  // namespace tonnx
