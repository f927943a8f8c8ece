// sort.cpp - elements in order: TopK.
#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/reduce/rows.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

void infer_top_k(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  if (shape == nullptr) {
    n.set(0, n.dtype("X"), std::nullopt);
    return n.set(1, DType::Int64, std::nullopt);
  }
  const auto axis = static_cast<size_t>(n.axis("axis", "X"));
  Shape result = *shape;
  const auto k = n.find_dims("K");
  require(!k || k->size() == 1, "K has {} elements where one is needed", k ? k->size() : 0);
  const Dim count = k ? k->front() : n.fresh();
  if (const auto number = count.constant()) {
    const auto size = result[axis].constant();
    require(*number >= 0 && (!size || *number <= *size), "the first {} of {} elements are asked for", *number,
            result[axis].text());
  }
  result[axis] = count;
  n.set(0, n.dtype("X"), result);
  n.set(1, DType::Int64, std::move(result));
}

/// torch.topk promises nothing about the order of equal elements, where ONNX wants the lower index first: hence a
/// stable sort. torch.max and torch.min give the first of equal elements.
Values lower_top_k(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t dim = n.axis_of_any_rank("axis", "X");
  const bool largest = n.flag("largest");
  n.flag("sorted");  // 0 allows any order, this one too
  const IntArg k = n.int_arg("K");
  Value* x = n.input("X");
  const DType dtype = n.dtype("X");
  const bool has_kernel = dtype != DType::UInt16 && dtype != DType::UInt32 && dtype != DType::UInt64;
  if (k.is(1) && has_kernel) return aten.all(largest ? "max.dim" : "min.dim", x, dim, true);
  const Values sorted = aten.all("sort.stable", x, Kw{"stable", true}, Kw{"dim", dim}, Kw{"descending", largest});
  const Shape* shape = n.find_shape("X");
  const auto size = shape ? (*shape)[static_cast<size_t>(dim)].constant() : std::nullopt;
  if (size && k.is(*size)) return sorted;
  Values result(std::vector<Value*>{});
  for (size_t i = 0; i < 2; ++i) {
    result.push_back(n.wants_output(i) ? aten("slice.Tensor", sorted[i], dim, nullptr, k) : nullptr);
  }
  return result;
}

void up_k_to_input(OnnxEdit& edit) {
  const auto k = edit.node().find_attribute("k") ? edit.i("k", 0) : 0;
  require(k > 0, "attribute 'k' is missing, or not positive");
  drop_attribute(edit, "k");
  edit.node().set_input(1, edit.ints({k}, "k"));
}

void down_k_to_attribute(OnnxEdit& edit) {
  const auto k = edit.const_ints(1);
  if (!k || k->size() != 1) edit.cannot("K is not constant, and is an attribute in opset 9");
  edit.node().resize_inputs(1);
  edit.node().set_attribute("k", (*k)[0]);
}

void down_largest_first(OnnxEdit& edit) {
  require_default(edit, "largest", 1);
  drop_attribute(edit, "sorted");  // the older form always sorts
}

constexpr OpsetStep kTopKHistory[] = {
    {.to = 10, .up = up_k_to_input, .down = down_k_to_attribute},
    {.to = 11, .down = down_largest_first, .adds = kAllInts},
    {.to = 24, .adds = kBFloat16},
};

constexpr OnnxOp kSortOnnx[] = {
    {.sig = "TopK(T X, tensor(int64) K, *, int axis=-1, int largest=1, int sorted=1) -> (T Values, I Indices)",
     .since = 1,
     .runtime = {kByteInts | dtype_set(DType::Int16)},
     .history = kTopKHistory,
     .infer = infer_top_k,
     .open = open_along_axis,
     .eval = eval_top_k,
     .lower = lower_top_k},
};

constexpr AtenOp kSortAten[] = {
    {.sig = "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
            "Tensor indices)",
     .types = types_values_and_places,
     .layout = Layout::Inputs,
     .python = "torch.sort",
     .raise = raise_sort},
    {.sig = "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .types = types_extreme,
     .python = "torch.max",
     .raise = raise_extreme_dim},
    {.sig = "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .types = types_extreme,
     .python = "torch.min",
     .raise = raise_extreme_dim},
};

}  // namespace

extern const OpFamily kSortOps;
constinit const OpFamily kSortOps{"sort", kSortOnnx, kSortAten};

}  // namespace tonnx
