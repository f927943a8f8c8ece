// shape.cpp - the shape of a tensor, and changes of it: Shape, Size, Reshape, Flatten, Expand, Tile.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/same_value.h"
#include "ops/frame/size_node.h"
#include "ops/move/rows.h"
#include "ops/shape/rows.h"

namespace tonnx {
namespace {

// Shape and Size

void infer_shape(InferNode& n) {
  const Shape* shape = n.find_shape("data");
  if (shape == nullptr) return n.set(0, DType::Int64, Shape{n.fresh()});
  const auto rank = static_cast<int64_t>(shape->size());
  const auto place = [&](int64_t at) { return std::max<int64_t>(0, std::min(at < 0 ? at + rank : at, rank)); };
  const int64_t start = place(n.i("start"));
  const int64_t end = std::max(start, place(n.find_i("end").value_or(rank)));
  n.set(0, DType::Int64, Shape{end - start});
  n.set_dims({shape->begin() + start, shape->begin() + end});
}

// Only where the rank is not known: elsewhere the elements are.
Values lower_shape(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t start = n.i("start");
  const auto end = n.find_i("end");
  return aten("tonnx::shape", n.input("data"), start == 0 ? Arg(nullptr) : Arg(start), end ? Arg(*end) : Arg(nullptr));
}

void infer_size(InferNode& n) {
  n.set(0, DType::Int64, Shape{});
  if (const Shape* shape = n.find_shape("data")) n.set_dims({count_of(*shape)});
}

Values lower_size(const OnnxNode& n, AtenBuilder& aten) {
  return aten("tonnx::int_scalar", aten("sym_numel", n.input("data")), Kw{"dtype", DType::Int64});
}

// Reshape

Shape reshaped(InferNode& n, const Dims& sizes) {
  const Shape* from = n.find_shape("data");
  const bool copies_zeros = !n.flag("allowzero");
  Shape result;
  Dim others(1);
  std::optional<size_t> open;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim size = sizes[i];
    if (size.is(-1)) {
      require(!open, "more than one size is -1");
      open = i;
    } else {
      if (size.is(0) && copies_zeros) {
        require(!from || i < from->size(), "size {} is to be copied of an input of {} dimensions", i,
                from ? from->size() : 0);
        size = from ? (*from)[i] : n.fresh();
      }
      require(!size.is_constant() || *size.constant() >= 0, "the size {} is negative", size.text());
      others = others * size;
    }
    result.push_back(std::move(size));
  }
  if (from == nullptr) {
    if (open) result[*open] = n.fresh();
    return result;
  }
  const Dim count = count_of(*from);
  if (!open) {
    require(!count.is_constant() || !others.is_constant() || count == others, "{} elements do not fit {}", count.text(),
            text_of(result));
  } else if (others.is(0)) {
    result[*open] = n.fresh();
  } else if (const auto exact = exact_div(count, others)) {
    result[*open] = *exact;
  } else {
    require(!count.is_constant() || !others.is_constant(), "{} elements cannot be split by {}", count.text(),
            others.text());
    result[*open] = floor_div(count, others);
  }
  return result;
}

void infer_reshape(InferNode& n) {
  const auto sizes = n.find_dims("shape");
  n.set(0, n.dtype("data"), sizes ? reshaped(n, *sizes) : n.fresh_shape("shape"));
  n.keep_elements("data");
}

/// The dimensions that one dimension of `to` joins, where all others stay: first and last.
std::optional<std::pair<int64_t, int64_t>> joined_dims(const Shape& from, const Shape& to) {
  if (to.empty() || from.size() <= to.size()) return std::nullopt;
  for (size_t first = 0; first < to.size(); ++first) {
    const size_t behind = to.size() - first - 1;
    const auto last = from.end() - static_cast<std::ptrdiff_t>(behind);
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
    if (std::equal(from.begin(), begin, to.begin()) && std::equal(last, from.end(), to.end() - (from.end() - last)) &&
        count_of(Shape(begin, last)) == to[first]) {
      return std::pair(static_cast<int64_t>(first), static_cast<int64_t>(from.size() - behind) - 1);
    }
  }
  return std::nullopt;
}

/// Sizes that only the run tells: their zeros stand for sizes of the input.
Arg sizes_at_run_time(const OnnxNode& n, AtenBuilder& aten, Value* x) {
  if (n.flag("allowzero")) return n.int_list("shape");
  const Shape* data = n.find_shape("data");
  const auto count = n.output_type().rank();
  if (data == nullptr || !count) return aten("tonnx::copied_zeros", n.int_list("shape"), x);
  IntArgs own;
  for (int64_t i = 0; i < *count; ++i) own.push_back(i < static_cast<int64_t>(data->size()) ? n.size("data", i) : 0);
  Value* sizes = n.input("shape");
  return aten("tonnx::tolist", aten("where.self", aten("eq.Scalar", sizes, 0), aten.ints(own), sizes));
}

Values lower_reshape(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("data");
  const auto sizes = n.find_dims("shape");
  const bool copies_zeros = !n.flag("allowzero");
  if (!sizes) return aten("reshape", x, sizes_at_run_time(n, aten, x));
  const Shape* from = n.find_shape("data");
  if (const auto& to = n.output_type().shape; from && to) {
    if (*from == *to) return x;
    if (const auto dims = joined_dims(*from, *to)) {
      const bool to_last = dims->second + 1 == static_cast<int64_t>(from->size());
      return aten("flatten.using_ints", x, dims->first, to_last ? -1 : dims->second);
    }
  }
  IntArgs target;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const bool copied = (*sizes)[i].is(0) && copies_zeros;
    target.push_back(copied ? n.size("data", static_cast<int64_t>(i)) : n.int_arg((*sizes)[i]));
  }
  return aten("reshape", x, target);
}

void up_reshape_5(OnnxEdit& edit) {
  drop_attribute(edit, "consumed_inputs");
  attribute_to_input(edit, "shape", 1);
}

// Flatten

/// How many dimensions make the first of the two; nothing where the axis counts from the back of an unknown rank.
std::optional<int64_t> flatten_axis(const NodeView& n) {
  const int64_t axis = n.i("axis");
  const auto rank = n.find_rank("input");
  if (!rank) return axis < 0 ? std::nullopt : std::optional(axis);
  require(axis >= -*rank && axis <= *rank, "axis {} is out of range for rank {}", axis, *rank);
  return axis < 0 ? axis + *rank : axis;
}

void infer_flatten(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  if (shape == nullptr) return n.set(0, n.dtype("input"), Shape{n.fresh(), n.fresh()});
  const auto middle = shape->begin() + *flatten_axis(n);
  n.set(0, n.dtype("input"), Shape{count_of(Shape(shape->begin(), middle)), count_of(Shape(middle, shape->end()))});
  n.keep_elements("input");
}

// Not reshape(n, -1): a tensor without elements says nothing of the size that is left open.
Values lower_flatten(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  const auto rank = n.find_rank("input");
  const auto axis = flatten_axis(n);
  if (!axis)  // counted from the back of a tensor whose rank only the run tells, and which may be the first one
    return aten("flatten.using_ints", aten("flatten.using_ints", aten("unsqueeze", x, 0), n.i("axis")), 0, -2);
  if (*axis == 0) return aten("unsqueeze", aten("flatten.using_ints", x), 0);
  if (rank && *axis == *rank) return aten("unsqueeze", aten("flatten.using_ints", x), 1);
  if (!rank) x = aten("unsqueeze", x, -1);  // the axis may be behind the last one
  if (*axis > 1) x = aten("flatten.using_ints", x, 0, *axis - 1);
  return rank && *axis == *rank - 1 ? x : aten("flatten.using_ints", x, 1);
}

// Expand

void infer_expand(InferNode& n) {
  const auto sizes = n.find_dims("shape");
  const Shape* from = n.find_shape("input");
  const auto elements = n.find_dims("input");
  if (!sizes) {
    auto shape = n.fresh_shape("shape");
    if (!shape || !from) return n.set(0, n.dtype("input"), std::nullopt);
    while (shape->size() < from->size()) shape->insert(shape->begin(), (*from)[from->size() - shape->size() - 1]);
    return n.set(0, n.dtype("input"), std::move(shape));
  }
  for (const Dim& size : *sizes)
    require(!size.is_constant() || *size.constant() >= 0, "the size {} is negative", size.text());
  auto shape = from ? broadcast(*from, *sizes) : std::nullopt;
  if (elements && shape && shape->size() <= 1) {
    const auto count = shape->empty() ? 1 : shape->at(0).constant().value_or(INT64_MAX);
    if (count == static_cast<int64_t>(elements->size())) n.set_dims(*elements);
    if (elements->size() == 1 && count <= 64) n.set_dims(Dims(static_cast<size_t>(count), elements->at(0)));
  }
  n.set(0, n.dtype("input"), std::move(shape));
}

Values lower_expand(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  const auto sizes = n.find_dims("shape");
  const Shape* from = n.find_shape("input");
  const auto& to = n.output_type().shape;
  const Shape* count = n.find_shape("shape");
  if (!from || !to || (!sizes && (!count || count->size() != 1 || !count->at(0).is_constant()))) {
    return aten("expand", x, aten("tonnx::broadcast_shapes", x, n.int_list("shape")));
  }
  const size_t rank = to->size();
  const auto own = [&](size_t i) { return i + from->size() < rank ? Dim(1) : (*from)[i + from->size() - rank]; };
  IntArgs target;
  if (sizes) {
    if (*from == *to) return x;
    for (size_t i = 0; i < rank; ++i) {
      const bool stays = i + from->size() >= rank && own(i) == (*to)[i];
      target.push_back(stays ? IntArg(-1) : n.int_arg((*to)[i]));
    }
    return aten("expand", x, target);
  }
  // each size that is 1 at run time leaves the input's own
  const auto given = static_cast<size_t>(*count->at(0).constant());
  IntArgs kept;
  for (size_t i = rank - given; i < rank; ++i) {
    kept.push_back(i + from->size() < rank ? IntArg(1)
                                           : n.size("input", static_cast<int64_t>(i + from->size() - rank)));
  }
  Value* asked = n.input("shape");
  Value* list = aten("tonnx::tolist", aten("where.self", aten("eq.Scalar", asked, 1), aten.ints(kept), asked));
  if (given == rank) return aten("expand", x, list);
  for (size_t i = 0; i < rank - given; ++i) target.push_back(-1);
  for (size_t i = 0; i < given; ++i) target.push_back(aten("tonnx::list_item", list, static_cast<int64_t>(i)));
  return aten("expand", x, target);
}

// Tile

void infer_tile(InferNode& n) {
  const auto repeats = n.find_dims("repeats");
  if (repeats) n.learn_rank("input", static_cast<int64_t>(repeats->size()));
  const Shape* from = n.find_shape("input");
  if (from == nullptr) return n.set(0, n.dtype("input"), n.fresh_shape("repeats"));
  require(!repeats || repeats->size() == from->size(), "{} repeats for {} dimensions", repeats ? repeats->size() : 0,
          from->size());
  Shape shape;
  for (size_t i = 0; i < from->size(); ++i) {
    if (repeats) {
      const auto number = (*repeats)[i].constant();
      require(!number || *number >= 0, "a tensor is repeated {} times", number.value_or(0));
    }
    shape.push_back(repeats ? (*from)[i] * (*repeats)[i] : n.fresh());
  }
  const auto elements = n.find_dims("input");
  if (elements && shape.size() == 1 && shape[0].is_constant() && *shape[0].constant() <= 64 && !elements->empty()) {
    Dims all;
    for (int64_t i = 0; i < *shape[0].constant(); ++i)
      all.push_back((*elements)[static_cast<size_t>(i) % elements->size()]);
    n.set_dims(std::move(all));
  }
  n.set(0, n.dtype("input"), std::move(shape));
}

Values lower_tile(const OnnxNode& n, AtenBuilder& aten) {
  if (const auto repeats = n.find_const_ints("repeats")) {
    if (std::all_of(repeats->begin(), repeats->end(), [](int64_t count) { return count == 1; }))
      return n.input("input");
  }
  return aten("repeat", n.input("input"), n.int_list("repeats"));
}

/// Opset 1 repeats one axis only: (input, tiles, axis), both of one element.
void up_tile_6(OnnxEdit& edit) {
  const auto tiles = edit.const_floats(1), axis = edit.const_floats(2);
  const auto rank = edit.rank(0);
  if (!tiles || !axis || !rank) edit.cannot("tiles and axis must be constants, and the rank known");
  require(tiles->size() == 1 && axis->size() == 1, "tiles and axis must have one element each");
  require((*axis)[0] >= -static_cast<double>(*rank) && (*axis)[0] < static_cast<double>(*rank),
          "axis {} is out of range for rank {}", (*axis)[0], *rank);
  require((*tiles)[0] >= 0 && (*tiles)[0] < 1e15, "a tensor is repeated {} times", (*tiles)[0]);
  std::vector<int64_t> repeats(static_cast<size_t>(*rank), 1);
  repeats[static_cast<size_t>(NodeView::normalized(static_cast<int64_t>((*axis)[0]), *rank))] =
      static_cast<int64_t>((*tiles)[0]);
  edit.node().resize_inputs(1);
  edit.node().set_input(1, edit.ints(std::move(repeats), "repeats"));
}

void down_tile_6(OnnxEdit& edit) {
  const auto repeats = edit.const_ints(1);
  if (!repeats) edit.cannot("the repeats are not constant, and the older opset repeats one axis only");
  const auto other = [](int64_t count) { return count != 1; };
  if (std::count_if(repeats->begin(), repeats->end(), other) > 1) edit.cannot("the older opset repeats one axis only");
  const auto at = std::find_if(repeats->begin(), repeats->end(), other);
  const DType dtype = edit.node().input(0) ? edit.node().input(0)->type.dtype : DType::Float32;
  const bool none = at == repeats->end();
  edit.node().set_input(1, edit.constant(make_floats(dtype, {1}, {none ? 1.0 : static_cast<double>(*at)}), "tiles"));
  edit.node().set_input(
      2, edit.constant(make_floats(dtype, {1}, {none ? 0.0 : static_cast<double>(at - repeats->begin())}), "axis"));
}

/// `x.reshape(2, -1)`: the sizes as arguments, and not as a list, where there are any.
std::string emit_sizes(const Emission& e) {
  const std::string& list = e.signature().inputs[1].name;
  const bool is_counted = !e.value(list) && !e.items(list).empty();
  return fmt::format("{}.{}({})", e.text("self", precedence::kAtom), e.signature().name,
                     is_counted ? joined(e.items(list)) : e.text(list));
}

/// A part of the sizes is cut out of all of them.
void down_shape_15(OnnxEdit& edit) {
  const int64_t start = edit.i("start", 0), end = edit.i("end", INT64_MAX);
  edit.node().take_attribute("start");
  edit.node().take_attribute("end");
  if (start == 0 && end == INT64_MAX) return;
  edit.after(0, "Slice", {nullptr, edit.ints({start}, "start"), edit.ints({end}, "end"), edit.ints({0}, "axes")});
}

/// A size of 0 that means 0 gives a tensor without elements, whatever the input is.
void down_reshape_14(OnnxEdit& edit) {
  if (edit.i("allowzero", 0) == 0) return drop_attribute(edit, "allowzero");
  const auto sizes = edit.const_ints(1);
  // the sizes of another tensor: they are 0 where there are no elements, and the older opset has nothing for that
  const Node* source = edit.node().input(1) ? edit.node().input(1)->producer : nullptr;
  if (!sizes && source != nullptr && source->op == "Shape") return drop_attribute(edit, "allowzero");
  if (!sizes) edit.cannot("the older opset has no attribute 'allowzero'");
  edit.node().take_attribute("allowzero");
  if (std::find(sizes->begin(), sizes->end(), 0) == sizes->end()) return;
  const DType dtype = edit.node().output(0)->type.dtype;
  if (dtype == DType::Undefined || std::find(sizes->begin(), sizes->end(), -1) != sizes->end())
    edit.cannot("the older opset has no attribute 'allowzero'");
  Value* shape = edit.node().input(1);
  edit.node().resize_inputs(0);
  edit.node().op = "ConstantOfShape";
  edit.node().add_input(shape);
  edit.node().set_attribute("value", make_floats(dtype, {1}, {0}));
}

constexpr OpsetStep kShapeHistory[] = {
    {.to = 13, .adds = kBFloat16}, {.to = 15, .down = down_shape_15}, {.to = 19, .adds = kFloat8},
    {.to = 21, .adds = kInt4},     {.to = 23, .adds = kFloat4},       {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kSizeHistory[] = {
    {.to = 13, .adds = kBFloat16}, {.to = 19, .adds = kFloat8},     {.to = 21, .adds = kInt4},
    {.to = 23, .adds = kFloat4},   {.to = 24, .adds = kFloat8E8M0}, {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kReshapeHistory[] = {
    {.to = 5, .up = up_reshape_5, .down = down_input_to_attr<"shape", 1>, .adds = kNonFloats},
    {.to = 13, .adds = kBFloat16},
    {.to = 14, .down = down_reshape_14},
    {.to = 19, .adds = kFloat8},
    {.to = 21, .adds = kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kFlattenHistory[] = {
    {.to = 9, .adds = kNonFloats}, {.to = 11, .down = down_axes_from_front<"axis">},
    {.to = 13, .adds = kBFloat16}, {.to = 21, .adds = kFloat8 | kInt4},
    {.to = 23, .adds = kFloat4},   {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kExpandHistory[] = {{.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kTileHistory[] = {
    {.to = 6, .up = up_tile_6, .down = down_tile_6, .adds = kNonFloats},
    {.to = 13, .adds = kBFloat16},
};

constexpr OnnxOp kShapeOnnx[] = {
    {.sig = "Shape(T data, *, int? end, int start=0) -> T1 shape",
     .since = 1,
     .history = kShapeHistory,
     .infer = infer_shape,
     .lower = lower_shape},
    {.sig = "Size(T data) -> T1 size", .since = 1, .history = kSizeHistory, .infer = infer_size, .lower = lower_size},
    {.sig = "Reshape(T data, I shape, *, int allowzero=0) -> T reshaped",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .history = kReshapeHistory,
     .infer = infer_reshape,
     .sizes = sizes_of_elements,
     .open = open_reshape,
     .eval = eval_same_elements,
     .same = same_where_shape_stays,
     .lower = lower_reshape},
    {.sig = "Flatten(T input, *, int axis=1) -> T output",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .history = kFlattenHistory,
     .infer = infer_flatten,
     .sizes = sizes_of_elements,
     .open = open_flatten,
     .eval = eval_same_elements,
     .same = same_where_shape_stays,
     .lower = lower_flatten},
    {.sig = "Expand(T input, I shape) -> T output",
     .since = 8,
     .traits = kTakesStrings | kMoves,
     .runtime = {kAllInts | kBool},
     .history = kExpandHistory,
     .infer = infer_expand,
     .open = open_expand,
     .eval = eval_expand,
     .same = same_where_shape_stays,
     .lower = lower_expand},
    {.sig = "Tile(T input, T1 repeats) -> T output",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .runtime = {kAllInts | kBool},
     .history = kTileHistory,
     .infer = infer_tile,
     .eval = eval_tile,
     .same = same_where_shape_stays,
     .lower = lower_tile},
};

constexpr AtenOp kShapeAten[] = {
    {.sig = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
     .types = types_reshape,
     .view = ViewRule::Reshape,
     .emit = emit_sizes,
     .raise = raise_reshaped},
    {.sig = "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
     .types = types_flatten,
     .view = ViewRule::Reshape,
     .python = ".flatten",
     .raise = raise_reshaped},
    {.sig = "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
     .types = types_expand,
     .view = ViewRule::Expand,
     .emit = emit_sizes,
     .raise = raise_expand},
    {.sig = "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
     .types = types_expand_as,
     .view = ViewRule::Expand,
     .python = ".expand_as",
     .raise = raise_expand},
    {.sig = "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor",
     .types = types_repeat,
     .emit = emit_sizes,
     .raise = raise_repeat},
    {.sig = "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
     .types = types_as_self,
     .view = ViewRule::Contiguous,
     .python = ".contiguous",
     .raise = raise_nothing},
};

}  // namespace

extern const OpFamily kShapeOps;
constinit const OpFamily kShapeOps{"shape", kShapeOnnx, kShapeAten};

}  // namespace tonnx
