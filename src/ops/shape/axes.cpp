// axes.cpp - axes taken away, put in and reordered: Squeeze, Unsqueeze, Transpose.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/same_value.h"
#include "ops/index/rows.h"
#include "ops/move/rows.h"
#include "ops/search/rows.h"
#include "ops/shape/rows.h"

namespace tonnx {
namespace {

/// Constant axes of a tensor of that rank, ascending and from the front. Axes that are there twice are an error.
std::vector<int64_t> sorted_axes(const std::vector<int64_t>& given, int64_t rank) {
  std::vector<int64_t> axes;
  for (const int64_t axis : given) axes.push_back(NodeView::normalized(axis, rank));
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  require(twice == axes.end(), "axis {} is there twice", twice == axes.end() ? 0 : *twice);
  return axes;
}

/// How many elements an integer list has, where only its size is known.
std::optional<int64_t> find_count(const NodeView& n, std::string_view list) {
  const Shape* shape = n.find_shape(list);
  return shape && shape->size() == 1 ? shape->at(0).constant() : std::nullopt;
}

// Squeeze

/// The axes that go; nothing where only the run tells.
std::optional<std::vector<int64_t>> squeezed_axes(const NodeView& n) {
  const Shape* shape = n.find_shape("data");
  if (shape == nullptr) return std::nullopt;
  const auto rank = static_cast<int64_t>(shape->size());
  std::vector<int64_t> axes;
  if (n.has("axes")) {
    const auto given = n.find_const_ints("axes");
    if (!given) return std::nullopt;
    axes = sorted_axes(*given, rank);
  } else {  // all axes of size 1
    for (int64_t axis = 0; axis < rank; ++axis) {
      const Dim& dim = (*shape)[static_cast<size_t>(axis)];
      if (!dim.is_constant()) return std::nullopt;
      if (dim.is(1)) axes.push_back(axis);
    }
  }
  for (const int64_t axis : axes) {
    const Dim& dim = (*shape)[static_cast<size_t>(axis)];
    require(dim.is(1) || !dim.is_constant(), "axis {} of size {} cannot be squeezed", axis, dim.text());
  }
  return axes;
}

void infer_squeeze(InferNode& n) {
  const auto axes = squeezed_axes(n);
  const auto rank = n.find_rank("data");
  if (axes) {
    Shape shape;
    for (int64_t i = 0; i < *rank; ++i) {
      if (!std::binary_search(axes->begin(), axes->end(), i))
        shape.push_back((*n.find_shape("data"))[static_cast<size_t>(i)]);
    }
    n.set(0, n.dtype("data"), std::move(shape));
    return n.keep_elements("data");
  }
  const auto count = n.has("axes") ? find_count(n, "axes") : std::nullopt;
  if (!rank || !count) return n.set(0, n.dtype("data"), std::nullopt);
  require(*count <= *rank, "{} axes of {} are squeezed", *count, *rank);
  Shape shape;
  for (int64_t i = *count; i < *rank; ++i) shape.push_back(n.fresh());
  n.set(0, n.dtype("data"), std::move(shape));
}

Values lower_squeeze(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("data");
  auto axes = squeezed_axes(n);
  if (!axes) {
    if (!n.has("axes")) return aten("squeeze", x);
    axes = n.find_const_ints("axes");
  }
  if (axes) {
    if (axes->empty()) return x;
    return axes->size() == 1 ? aten("squeeze.dim", x, axes->at(0)) : aten("squeeze.dims", x, *axes);
  }
  const auto rank = n.find_rank("data"), count = find_count(n, "axes");
  if (!rank || !count) return aten("squeeze.dims", x, n.int_list("axes"));
  // the sizes that stay, in their order: those of the axes that are not given come first in a stable sort
  Value* gone = aten("index_fill.int_Scalar", aten("zeros", IntArgs{*rank}, Kw{"dtype", DType::Int64}), 0,
                     aten("remainder.Scalar", n.input("axes"), *rank), 1);
  Value* order = aten("argsort.stable", gone, Kw{"stable", true});
  IntArgs sizes;
  for (int64_t i = 0; i < *rank; ++i) sizes.push_back(n.size("data", i));
  Value* kept = aten("index.Tensor", aten.ints(sizes),
                     std::vector<Value*>{aten("slice.Tensor", order, 0, nullptr, *rank - *count)});
  return aten("reshape", x, aten("tonnx::tolist", kept));
}

// Unsqueeze

void infer_unsqueeze(InferNode& n) {
  const Shape* from = n.find_shape("data");
  const auto given = n.find_const_ints("axes");
  const auto count = given ? std::optional(static_cast<int64_t>(given->size())) : find_count(n, "axes");
  if (from == nullptr || !count || *count > 64) return n.set(0, n.dtype("data"), std::nullopt);
  const int64_t rank = static_cast<int64_t>(from->size()) + *count;
  Shape shape;
  if (given) {
    const std::vector<int64_t> axes = sorted_axes(*given, rank);
    shape = *from;
    for (const int64_t axis : axes) shape.insert(shape.begin() + axis, Dim(1));
  } else {
    for (int64_t i = 0; i < rank; ++i) shape.push_back(n.fresh());
  }
  n.set(0, n.dtype("data"), std::move(shape));
  n.keep_elements("data");
}

/// Where only the run tells how many sizes there are: those of the input are put where no axis is.
bool expand_unsqueeze(const NodeView& n, OnnxEdit& edit) {
  const auto given = n.find_const_ints("axes");
  const auto count = given ? std::optional(static_cast<int64_t>(given->size())) : find_count(n, "axes");
  const bool is_from_back =
      given && given->size() > 1 && std::any_of(given->begin(), given->end(), [](int64_t axis) { return axis < 0; });
  if (n.find_rank("data") ? count && *count <= 64 : given && !is_from_back) return false;
  Expansion make(edit);
  Value *x = edit.node().input(0), *axes = edit.node().input(1);
  Value* sizes = make("Shape", {x});
  Value* to = make("Add", {make("Size", {sizes}), make("Size", {axes})});
  Value* from_front = make("Mod", {axes, to});
  Value* ones = make("Expand", {make.ints({1}), make.unsqueeze(to, {0})});
  Value* is_free = make("ScatterElements", {ones, from_front, make("Sub", {from_front, from_front})});
  Value* places = make.transpose(make("NonZero", {is_free}), {1, 0});
  return edit.replace_with(
      {make("Reshape", {x, make("ScatterND", {ones, places, sizes})}, {{"allowzero", int64_t{1}}})});
}

Values lower_unsqueeze(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("data");
  const auto rank = n.find_rank("data");
  if (const auto given = n.find_const_ints("axes")) {
    std::vector<int64_t> axes = *given;
    if (rank) axes = sorted_axes(axes, *rank + static_cast<int64_t>(axes.size()));
    std::sort(axes.begin(), axes.end());
    for (const int64_t axis : axes) x = aten("unsqueeze", x, axis);
    return x;
  }
  const auto count = find_count(n, "axes");
  if (!rank || !count || *count > 64) fail_unsupported("input 'axes' has more than 64 elements");
  const int64_t to = *rank + *count;
  // sizes of 1, with those of the input where no axis is put in
  Value* kept = aten("index_fill.int_Scalar", aten("ones", IntArgs{to}, Kw{"dtype", DType::Bool}), 0,
                     aten("remainder.Scalar", n.input("axes"), to), false);
  IntArgs sizes;
  for (int64_t i = 0; i < *rank; ++i) sizes.push_back(n.size("data", i));
  Value* shape = aten("masked_scatter", aten("ones", IntArgs{to}, Kw{"dtype", DType::Int64}), kept, aten.ints(sizes));
  return aten("reshape", x, aten("tonnx::tolist", shape));
}

// Transpose

/// The order of the axes; nothing where neither it nor the rank is known.
std::optional<std::vector<int64_t>> order_of(const NodeView& n) {
  const auto rank = n.find_rank("data");
  auto perm = n.find_ints("perm");
  if (!perm || (perm->empty() && rank.value_or(1) != 0)) {
    if (!rank) return std::nullopt;
    perm.emplace(static_cast<size_t>(*rank));
    std::iota(perm->rbegin(), perm->rend(), 0);
  }
  const auto count = static_cast<int64_t>(perm->size());
  require(!rank || *rank == count, "perm has {} axes for a tensor of {}", count, rank.value_or(0));
  std::vector<int64_t> order;
  for (const int64_t axis : *perm) order.push_back(NodeView::normalized(axis, count));
  sorted_axes(order, count);
  return order;
}

void infer_transpose(InferNode& n) {
  if (const auto perm = n.find_ints("perm")) n.learn_rank("data", static_cast<int64_t>(perm->size()));
  const Shape* from = n.find_shape("data");
  const auto order = order_of(n);
  if (!order) return n.set(0, n.dtype("data"), std::nullopt);
  Shape shape;
  for (const int64_t axis : *order) shape.push_back(from ? (*from)[static_cast<size_t>(axis)] : n.fresh());
  n.set(0, n.dtype("data"), std::move(shape));
  if (std::is_sorted(order->begin(), order->end())) n.keep_elements("data");
}

Values lower_transpose(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("data");
  const auto order = order_of(n);
  if (!order) return aten("permute", x, aten("tonnx::reversed_axes", x));
  std::vector<int64_t> moved;
  for (size_t i = 0; i < order->size(); ++i) {
    if ((*order)[i] != static_cast<int64_t>(i)) moved.push_back(static_cast<int64_t>(i));
  }
  if (moved.empty()) return x;
  if (order->size() == 2) return aten("t", x);
  return moved.size() == 2 ? aten("transpose.int", x, moved[0], moved[1]) : aten("permute", x, *order);
}

/// `x.permute(0, 2, 1)`: the axes as arguments, not as a list.
std::string emit_dims(const Emission& e) {
  return fmt::format("{}.{}({})", e.text("self", precedence::kAtom), e.signature().name, joined(e.items("dims")));
}

/// `x.squeeze((0, 2))`: a list of axes is not taken.
std::string emit_squeeze_dims(const Emission& e) {
  return fmt::format("{}.squeeze({})", e.text("self", precedence::kAtom), python_tuple(e.items("dim")));
}

constexpr OpsetStep kSqueezeHistory[] = {
    {.to = 11, .down = down_axes_from_front<"axes">},
    {.to = 13, .up = up_attr_to_input<"axes", 1>, .down = down_input_to_attr<"axes", 1>, .adds = kBFloat16},
    {.to = 21, .adds = kFloat8 | kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kUnsqueezeHistory[] = {
    {.to = 11, .down = down_axes_from_front<"axes", true>},
    {.to = 13, .up = up_attr_to_input<"axes", 1>, .down = down_input_to_attr<"axes", 1>, .adds = kBFloat16},
    {.to = 21, .adds = kFloat8 | kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kTransposeHistory[] = {
    {.to = 13, .adds = kBFloat16},   {.to = 21, .adds = kFloat8 | kInt4}, {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0}, {.to = 25, .adds = kInt2},
};

/// Transpose into the order that is there
Value* same_of_transpose(const Node& node) {
  const Value* x = node.input(0);
  const auto perm = ints_of(node, "perm");
  if (!perm) return x && x->type.shape && x->type.shape->size() <= 1 ? node.input(0) : nullptr;
  for (size_t i = 0; i < perm->size(); ++i) {
    if ((*perm)[i] != static_cast<int64_t>(i)) return nullptr;
  }
  return node.input(0);
}

constexpr OnnxOp kAxesOnnx[] = {
    {.sig = "Squeeze(T data, I? axes) -> T squeezed",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .history = kSqueezeHistory,
     .infer = infer_squeeze,
     .open = open_squeeze,
     .eval = eval_same_elements,
     .same = same_where_shape_stays,
     .lower = lower_squeeze},
    {.sig = "Unsqueeze(T data, I axes) -> T expanded",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .history = kUnsqueezeHistory,
     .infer = infer_unsqueeze,
     .eval = eval_same_elements,
     .same = same_where_shape_stays,
     .lower = lower_unsqueeze,
     .expand = expand_unsqueeze},
    {.sig = "Transpose(T data, *, ints? perm) -> T transposed",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .history = kTransposeHistory,
     .infer = infer_transpose,
     .eval = eval_transpose,
     .same = same_of_transpose,
     .lower = lower_transpose},
};

constexpr AtenOp kAxesAten[] = {
    {.sig = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
     .types = types_permute,
     .view = ViewRule::Permute,
     .emit = emit_dims,
     .raise = raise_permute},
    {.sig = "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
     .types = types_transpose,
     .view = ViewRule::Transpose,
     .python = ".transpose",
     .raise = raise_transpose},
    {.sig = "aten::t(Tensor(a) self) -> Tensor(a)",
     .types = types_transposed,
     .view = ViewRule::Transposed,
     .python = ".t",
     .raise = raise_matrix_transpose},
    {.sig = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
     .types = types_unsqueeze,
     .view = ViewRule::Unsqueeze,
     .python = ".unsqueeze",
     .raise = raise_unsqueeze},
    {.sig = "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
     .types = types_squeeze,
     .view = ViewRule::Squeeze,
     .python = ".squeeze",
     .raise = raise_squeeze},
    {.sig = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
     .types = types_squeeze,
     .view = ViewRule::Squeeze,
     .emit = emit_squeeze_dims,
     .raise = raise_squeeze},
    {.sig = "aten::squeeze(Tensor(a) self) -> Tensor(a)",
     .types = types_squeeze,
     .view = ViewRule::Squeeze,
     .python = ".squeeze",
     .raise = raise_squeeze},
    {.sig = "aten::flip(Tensor self, int[] dims) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .emit = emit_dims,
     .raise = raise_flip},
    {.sig = "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
     .types = types_argsort,
     .layout = Layout::Inputs,
     .python = "torch.argsort",
     .raise = raise_argsort},
    {.sig = "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = ".index_fill",
     .raise = raise_index_fill,
     .raise_complex = raise_each_part},
    {.sig = "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
     .types = types_masked_scatter,
     .python = ".masked_scatter",
     .raise = raise_masked_scatter,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kAxesOps;
constinit const OpFamily kAxesOps{"axes", kAxesOnnx, kAxesAten};

}  // namespace tonnx
