// scatter.cpp - elements put by index: ScatterElements, ScatterND, TensorScatter.
#include <algorithm>

#include "base/checked_int.h"
#include "base/error.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/same_value.h"
#include "ops/index/index.h"
#include "ops/index/rows.h"

namespace tonnx {
namespace {

/// What aten calls a reduction; empty for the one that only puts.
std::string aten_reduction(const NodeView& n) {
  const std::string reduction = n.s("reduction");
  if (reduction == "none") return "";
  if (reduction == "add") return "sum";
  if (reduction == "mul") return "prod";
  if (reduction == "max") return "amax";
  require(reduction == "min", "'{}' is not a reduction", reduction);
  return "amin";
}

/// The element type where the order of elements counts; none elsewhere.
DType compared_type(DType dtype, const std::string& reduction) {
  return reduction == "amax" || reduction == "amin" ? dtype : DType::Undefined;
}

Value* scatter(AtenBuilder& aten, Value* x, int64_t dim, Value* index, Value* updates, const std::string& reduction) {
  if (reduction.empty()) return aten("scatter.src", x, dim, index, updates);
  if (reduction == "sum") return aten("scatter_add", x, dim, index, updates);
  return aten("scatter_reduce.two", x, dim, index, updates, reduction);
}

Values lower_scatter_elements(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t dim = n.axis_of_any_rank("axis", "data");
  const DType dtype = n.dtype("data"), kernel = kernel_type(dtype);
  Value* x = cast(aten, n.input("data"), dtype, kernel);
  Value* updates = cast(aten, n.input("updates"), dtype, kernel);
  Value* index = index_from_front(n, aten, "indices", n.size("data", dim));
  const std::string reduction = aten_reduction(n);
  const DType compared = compared_type(dtype, reduction);
  Value* y = scatter(aten, reordered(aten, x, compared), dim, index, reordered(aten, updates, compared), reduction);
  return cast(aten, reordered(aten, y, compared), kernel, dtype);
}

/// aten::index_put puts and adds only. For the rest the dimensions that are indexed become one.
Value* scatter_flat(const OnnxNode& n, AtenBuilder& aten, Value* x, Value* updates, const std::string& reduction) {
  const int64_t depth = index_depth(n, "indices");
  const int64_t rank = n.rank("data"), index_rank = n.rank("indices") - 1;
  require(depth <= rank, "indices of {} dimensions for data of {}", depth, rank);
  const std::vector<Value*> columns = index_columns(n, aten, "indices");
  Value* index = nullptr;
  for (int64_t d = 0; d < depth; ++d) {
    const IntArg size = n.size("data", d);
    Value* column = columns[static_cast<size_t>(d)];
    if (!counts_from_front(n, "indices")) column = aten("remainder.Scalar", column, size);
    index = index ? aten("add.Tensor", aten("mul.Scalar", index, size), column) : column;
  }
  IntArgs rest{-1}, ones{-1}, sizes;
  for (int64_t d = 0; d < rank; ++d) {
    sizes.push_back(n.size("data", d));
    if (d >= depth) rest.push_back(sizes.back()), ones.push_back(1);
  }
  if (depth > 1) x = aten("flatten.using_ints", x, 0, depth == rank ? -1 : depth - 1);
  if (index_rank != 1) {
    index = aten("reshape", index, ones);
    updates = aten("reshape", updates, rest);
  } else if (ones.size() > 1) {
    index = aten("reshape", index, ones);
  }
  if (ones.size() > 1) index = aten("expand_as", index, updates);
  Value* y = scatter(aten, x, 0, index, updates, reduction);
  return depth > 1 ? aten("reshape", y, sizes) : y;
}

/// The same where only the run knows the ranks: the indices choose among the places of all elements.
Value* scatter_places(const OnnxNode& n, AtenBuilder& aten, Value* x, Value* updates, const std::string& reduction) {
  Value* places = aten("reshape_as", aten("arange", IntArg(aten("sym_numel", x))), x);
  Value* index = aten("flatten.using_ints", aten("tonnx::index_each", places, n.input("indices")));
  Value* flat = aten("flatten.using_ints", x);
  return aten("reshape_as", scatter(aten, flat, 0, index, aten("flatten.using_ints", updates), reduction), x);
}

Values lower_scatter_nd(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("data"), kernel = kernel_type(dtype);
  const std::string reduction = aten_reduction(n);
  if (reduction.empty() && kernel == dtype) {
    if (Value* y = put_slices(n, aten)) return y;
  }
  Value* x = cast(aten, n.input("data"), dtype, kernel);
  Value* updates = cast(aten, n.input("updates"), dtype, kernel);
  const bool puts = reduction.empty() || reduction == "sum";
  if (puts && !find_index_depth(n, "indices")) {
    Value* y = aten("tonnx::index_put_each", x, n.input("indices"), updates, reduction == "sum");
    return cast(aten, y, kernel, dtype);
  }
  if (puts) {
    return cast(aten, aten("index_put", x, index_columns(n, aten, "indices"), updates, reduction == "sum"), kernel,
                dtype);
  }
  const DType compared = compared_type(dtype, reduction);
  const bool knows_ranks = find_index_depth(n, "indices") && n.find_rank("data");
  const auto scattered = knows_ranks ? scatter_flat : scatter_places;
  Value* y = scattered(n, aten, reordered(aten, x, compared), reordered(aten, updates, compared), reduction);
  return cast(aten, reordered(aten, y, compared), kernel, dtype);
}

/// Each sample of the batch has its own place along the axis where the update begins.
Values lower_tensor_scatter(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t rank = n.rank("past_cache"), dim = n.axis("axis", "past_cache");
  require(dim != 0, "the axis is that of the batch");
  require(n.rank("update") == rank, "an update of rank {} for a cache of rank {}", n.rank("update"), rank);
  const std::string mode = n.s("mode");
  require(mode == "linear" || mode == "circular", "'{}' is not a mode", mode);
  const DType dtype = n.dtype("past_cache"), kernel = kernel_type(dtype);
  Value* update = cast(aten, n.input("update"), dtype, kernel);
  IntArgs along(static_cast<size_t>(rank - dim), 1), batch(static_cast<size_t>(rank), 1);
  along[0] = -1;
  batch[0] = -1;
  Value* index = aten("arange", n.size("update", dim));
  if (along.size() > 1) index = aten("reshape", index, along);
  if (Value* start = n.find_input("write_indices")) {
    index = aten("add.Tensor", aten("reshape", start, batch), index);
    if (mode == "circular") index = aten("remainder.Scalar", index, n.size("past_cache", dim));
  }
  index = aten("expand_as", index, update);
  Value* cache = cast(aten, n.input("past_cache"), dtype, kernel);
  return cast(aten, aten("scatter.src", cache, dim, index, update), kernel, dtype);
}

bool expand_tensor_scatter(const NodeView& n, OnnxEdit& edit) {
  const int64_t axis = n.i("axis");
  // the first axis is that of the batch
  const std::vector<int64_t> ranks = ranks_with(axis < 0 ? checked_add(axis, -1) : axis, 5);
  return choose_rank(edit, n, {"past_cache", "update"}, ranks) || choose_rank(edit, n, {"update"}, ranks);
}

std::string emit_index_put_each(const Emission& e) {
  return fmt::format("torch.index_put({}, {}.unbind(-1), {}{})", e.text("self"), e.text("indices", precedence::kAtom),
                     e.text("values"), e.flag("accumulate") ? ", accumulate=True" : "");
}

std::string emit_index_put(const Emission& e) {
  const std::vector<std::string> indices = e.items("indices");
  const bool has_none = std::find(indices.begin(), indices.end(), "None") != indices.end();  // torch.index_put has none
  return fmt::format("{}({}, {}, {}{})", has_none ? "torch.ops.aten.index_put" : "torch.index_put", e.text("self"),
                     python_tuple(indices), e.text("values"), e.flag("accumulate") ? ", accumulate=True" : "");
}

void up_to_scatter_elements(OnnxEdit& edit) {
  edit.node().op = "ScatterElements";
  edit.node().mark_changed();
}

void refuse_reduction(OnnxEdit& edit, std::initializer_list<std::string_view> known) {
  const Attribute* given = edit.node().find_attribute("reduction");
  const auto* reduction = given ? given->value.get<std::string>() : nullptr;
  if (reduction != nullptr && std::find(known.begin(), known.end(), *reduction) == known.end()) {
    edit.cannot("the older opset has no reduction '{}'", *reduction);
  }
}
void down_sums_and_products(OnnxEdit& edit) { refuse_reduction(edit, {"none", "add", "mul"}); }
void down_no_reduction(OnnxEdit& edit) {
  refuse_reduction(edit, {"none"});
  drop_attribute(edit, "reduction");
}

constexpr OpsetStep kScatterHistory[] = {{.to = 11, .up = up_to_scatter_elements}};
constexpr OpsetStep kHistory[] = {
    {.to = 13, .adds = kBFloat16},
    {.to = 16, .down = down_no_reduction},
    {.to = 18, .down = down_sums_and_products},
};

/// ScatterND and ScatterElements of no elements
Value* same_of_scatter(const Node& node) {
  const Value* updates = node.input(2);
  if (updates == nullptr || !updates->type.shape) return nullptr;
  const Shape& shape = *updates->type.shape;
  return std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is(0); }) ? node.input(0) : nullptr;
}

constexpr OnnxOp kScatterOnnx[] = {
    {.sig = "Scatter(T data, Tind indices, T updates, *, int axis=0) -> T output",
     .since = 9,
     .history = kScatterHistory,
     .note = "became ScatterElements",
     .until = 11},
    {.sig = "ScatterElements(T data, Tind indices, T updates, *, int axis=0, str reduction=\"none\") -> T output",
     .since = 11,
     .traits = kTakesStrings,
     .history = kHistory,
     .infer = infer_same_as_first,
     .open = open_scatter_elements,
     .eval = eval_scatter_elements,
     .same = same_of_scatter,
     .lower = lower_scatter_elements},
    {.sig = "ScatterND(T data, tensor(int64) indices, T updates, *, str reduction=\"none\") -> T output",
     .since = 11,
     .traits = kTakesStrings,
     .history = kHistory,
     .infer = infer_same_as_first,
     .open = open_scatter_nd,
     .eval = eval_scatter_nd,
     .same = same_of_scatter,
     .lower = lower_scatter_nd},
    {.sig = "TensorScatter(T past_cache, T update, tensor(int64)? write_indices, *, int axis=-2, str mode=\"linear\") "
            "-> T present_cache",
     .since = 24,
     .infer = infer_same_as_first,
     .eval = eval_tensor_scatter,
     .lower = lower_tensor_scatter,
     .expand = expand_tensor_scatter},
};

constexpr AtenOp kScatterAten[] = {
    {.sig = "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .types = types_as_self,
     .python = "torch.scatter",
     .raise = raise_scatter,
     .raise_complex = raise_each_part},
    {.sig = "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .types = types_as_self,
     .python = "torch.scatter",
     .raise = raise_scatter,
     .raise_complex = raise_each_part},
    {.sig = "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .types = types_as_self,
     .python = "torch.scatter_add",
     .raise = raise_scatter_add,
     .raise_complex = raise_each_part},
    {.sig = "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
            "include_self=True) -> Tensor",
     .types = types_as_self,
     .python = "torch.scatter_reduce",
     .raise = raise_scatter_reduce},
    {.sig = "tonnx::index_put_each(Tensor self, Tensor indices, Tensor values, bool accumulate=False) -> Tensor",
     .emit = emit_index_put_each},
    {.sig = "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .emit = emit_index_put,
     .raise = raise_index_put,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kScatterOps;
constinit const OpFamily kScatterOps{"scatter", kScatterOnnx, kScatterAten};

}  // namespace tonnx
