// unique.cpp - each of the values once: Unique.
#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

void infer_unique(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  const Dim count = n.fresh();
  const auto axis = n.find_i("axis");
  if (!axis) {
    n.set(0, n.dtype("X"), Shape{count});
  } else if (shape == nullptr) {
    n.set(0, n.dtype("X"), std::nullopt);
  } else {
    Shape result = *shape;
    result[static_cast<size_t>(n.axis("axis", "X"))] = count;
    n.set(0, n.dtype("X"), std::move(result));
  }
  if (n.output_count() > 1) n.set(1, DType::Int64, Shape{count});
  if (n.output_count() > 2) {
    Dim all(1);
    if (axis && shape) all = (*shape)[static_cast<size_t>(n.axis("axis", "X"))];
    for (size_t i = 0; !axis && shape && i < shape->size(); ++i) all = all * (*shape)[i];
    n.set(2, DType::Int64, Shape{shape ? all : n.fresh()});
  }
  if (n.output_count() > 3) n.set(3, DType::Int64, Shape{count});
}

/// PyTorch knows neither the order of first occurrence nor where that is.
Values lower_unique(const OnnxNode& n, AtenBuilder& aten) {
  const bool has_axis = n.has("axis"), is_sorted = n.flag("sorted");
  const int64_t axis = has_axis ? n.axis_of_any_rank("axis", "X") : 0;
  Value* x = n.input("X");
  Values found =
      has_axis ? aten.all("unique_dim", x, axis, true, true, true) : aten.all("_unique2", x, true, true, true);
  Value *y = found[0], *inverse = found[1], *counts = found[2];
  if (!has_axis && n.find_rank("X") != 1) inverse = aten("flatten.using_ints", inverse);
  if (is_sorted && !n.wants_output(1)) return {y, nullptr, inverse, counts};
  Value* each = aten("arange", aten.size(inverse, 0));
  Value* first =
      aten("scatter_reduce.two", aten("zeros_like", counts), 0, inverse, each, "amin", Kw{"include_self", false});
  if (is_sorted) return {y, first, inverse, counts};
  const Values order = aten.all("sort.stable", first, Kw{"stable", true});
  y = selected_along(aten, y, n.dtype("X"), axis, order[1]);
  if (n.wants_output(2)) {
    Value* places = aten("argsort.stable", order[1], Kw{"stable", true});
    inverse = aten("index_select", places, 0, inverse);
  }
  if (n.wants_output(3)) counts = aten("index_select", counts, 0, order[1]);
  return {y, order[0], inverse, counts};
}

/// `values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)`
std::string emit_unique(const Emission& e) {
  const bool has_dim = e.signature().find_input("dim") >= 0;
  std::string text = "torch.unique(" + e.text("self");
  if (!e.flag("sorted")) text += ", sorted=False";
  text += ", return_inverse=True, return_counts=True";
  if (has_dim) text += ", dim=" + e.text("dim");
  return text + ")";
}

constexpr OpsetStep kHistory[] = {{.to = 28, .adds = kBFloat16}};

constexpr OnnxOp kUniqueOnnx[] = {
    {.sig = "Unique(T X, *, int? axis, int sorted=1) -> (T Y, tensor(int64)? indices, tensor(int64)? inverse_indices, "
            "tensor(int64)? counts)",
     .since = 11,
     .traits = kBounded | kTakesStrings,
     .runtime = {dtype_set(DType::Int8, DType::Int64)},
     .history = kHistory,
     .infer = infer_unique,
     .eval = eval_unique,
     .lower = lower_unique},
};

constexpr AtenOp kUniqueAten[] = {
    {.sig = "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
            "(Tensor, Tensor, Tensor)",
     .types = types_unique,
     .emit = emit_unique,
     .raise = raise_unique},
    {.sig = "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
            "return_counts=False) -> (Tensor, Tensor, Tensor)",
     .types = types_unique_dim,
     .emit = emit_unique,
     .raise = raise_unique_dim},
};

}  // namespace

extern const OpFamily kUniqueOps;
constinit const OpFamily kUniqueOps{"unique", kUniqueOnnx, kUniqueAten};

}  // namespace tonnx
