// slice.cpp - parts of a tensor along its axes: Slice.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/same_value.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

// Bounds at least so large mean "to the end": exporters write the limits of 32 or 64 bits.
constexpr int64_t kFar = INT32_MAX;

/// The elements that a slice takes of an axis of known size: the first, and how many.
struct Range {
  int64_t first;
  int64_t count;
};

Range range_of(int64_t size, int64_t start, int64_t end, int64_t step) {
  const int64_t from_end = step < 0 ? 1 : 0;
  const auto clamped = [&](int64_t at, int64_t least) {
    if (at < 0) at += size;
    return std::max(least, std::min(at, size - from_end));
  };
  const int64_t first = clamped(start, 0);
  const int64_t last = clamped(end, -from_end);
  const int64_t distance = step < 0 ? first - last : last - first;
  const uint64_t stride = step < 0 ? uint64_t{0} - static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
  if (distance <= 0 || size == 0) return {0, 0};
  return {first, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1};
}

/// A bound of a slice as a place in [0, size]; nothing where its sign is not known.
std::optional<Dim> place_of(const Dim& bound, const Dim& size) {
  if (bound.is_non_negative()) return bound.is_constant() && *bound.constant() >= kFar ? size : min(bound, size);
  if (!bound.is_constant()) return std::nullopt;
  return *bound.constant() <= -kFar ? Dim(0) : max(size + bound, Dim(0));
}

std::optional<Dim> length_of(const Dim& size, const Dim& start, const Dim& end, int64_t step) {
  if (size.is_constant() && start.is_constant() && end.is_constant()) {
    return range_of(*size.constant(), *start.constant(), *end.constant(), step).count;
  }
  if (step < 0) {
    const bool from_last = start.is(-1) || (start.is_constant() && *start.constant() >= kFar);
    const bool to_first = end.is_constant() && *end.constant() <= -kFar;
    if (!from_last || !to_first || step < -kFar) return std::nullopt;
    return ceil_div(size, -step);
  }
  const auto first = place_of(start, size), last = place_of(end, size);
  if (!first || !last) return std::nullopt;
  return max(ceil_div(*last - *first, std::min(step, kFar)), Dim(0));
}

/// The axes that are sliced, counted from the front where the rank is known; nothing where only the run tells.
std::optional<std::vector<int64_t>> axes_of(const NodeView& n) {
  std::vector<int64_t> axes;
  if (n.has("axes")) {
    const auto given = n.find_const_ints("axes");
    if (!given) return std::nullopt;
    axes = *given;
  } else {
    const auto starts = n.find_dims("starts");
    const Shape* shape = n.find_shape("starts");
    size_t count = 0;
    if (starts) {
      count = starts->size();
    } else if (shape && shape->size() == 1 && shape->at(0).is_constant() && *shape->at(0).constant() <= 64) {
      count = static_cast<size_t>(*shape->at(0).constant());
    } else {
      return std::nullopt;
    }
    for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (const auto rank = n.find_rank("data")) {
    std::vector<bool> seen(static_cast<size_t>(*rank));
    for (int64_t& axis : axes) {
      axis = NodeView::normalized(axis, *rank);
      require(!seen[static_cast<size_t>(axis)], "axis {} is sliced twice", axis);
      seen[static_cast<size_t>(axis)] = true;
    }
  }
  for (const int64_t axis : axes) require(axis >= -kMaxRank && axis < kMaxRank, "axis {} is out of range", axis);
  return axes;
}

/// The steps; nothing where only the run tells.
std::optional<std::vector<int64_t>> steps_of(const NodeView& n, size_t count) {
  if (!n.has("steps")) return std::vector<int64_t>(count, 1);
  auto steps = n.find_const_ints("steps");
  if (!steps) return std::nullopt;
  require(steps->size() == count, "{} steps for {} axes", steps->size(), count);
  for (int64_t& step : *steps) {
    require(step != 0, "a step is zero");
    step = std::max(-kFar, std::min(step, kFar));
  }
  return steps;
}

/// Which size of a tensor it takes, where their number is not known: x.shape[1:2].
std::optional<int64_t> single_size(const NodeView& n) {
  const auto starts = n.find_const_ints("starts"), ends = n.find_const_ints("ends"), steps = n.find_const_ints("steps");
  if (!starts || !ends || starts->size() != 1 || ends->size() != 1 ||
      (n.has("steps") && (!steps || *steps != std::vector<int64_t>{1})))
    return std::nullopt;
  const bool is_one =
      ((*ends)[0] > (*starts)[0] && (*ends)[0] - 1 == (*starts)[0]) || ((*starts)[0] == -1 && (*ends)[0] > kMaxRank);
  return is_one && find_shape_of_any_rank(n.value("data")) ? std::optional((*starts)[0]) : std::nullopt;
}

void infer_slice(InferNode& n) {
  const Shape* data = n.find_shape("data");
  if (data == nullptr) return n.set(0, n.dtype("data"), std::nullopt);
  Shape shape = *data;
  const auto axes = axes_of(n);
  if (!axes) {
    for (Dim& dim : shape) dim = n.fresh();
    return n.set(0, n.dtype("data"), std::move(shape));
  }
  const auto steps = steps_of(n, axes->size());
  const auto starts = n.find_dims("starts"), ends = n.find_dims("ends");
  require(!starts || starts->size() == axes->size(), "{} starts for {} axes", starts ? starts->size() : 0,
          axes->size());
  require(!ends || ends->size() == axes->size(), "{} ends for {} axes", ends ? ends->size() : 0, axes->size());
  for (size_t i = 0; i < axes->size(); ++i) {
    Dim& dim = shape[static_cast<size_t>((*axes)[i])];
    const auto length = steps && starts && ends ? length_of(dim, (*starts)[i], (*ends)[i], (*steps)[i]) : std::nullopt;
    dim = length ? *length : n.fresh();
  }
  if (single_size(n)) {
    n.set(0, n.dtype("data"), Shape{1});
    return n.set_dims({n.fresh()});
  }
  n.set(0, n.dtype("data"), std::move(shape));
  const auto elements = n.find_dims("data");
  if (!elements || data->size() != 1 || axes->size() != 1 || !steps || !starts || !ends) return;
  const Dim &start = (*starts)[0], &end = (*ends)[0];
  if (!start.is_constant() || !end.is_constant()) return;
  const Range range = range_of(static_cast<int64_t>(elements->size()), *start.constant(), *end.constant(), (*steps)[0]);
  Dims taken;
  for (int64_t i = 0; i < range.count; ++i) {
    taken.push_back((*elements)[static_cast<size_t>(range.first + i * (*steps)[0])]);
  }
  n.set_dims(std::move(taken));
}

Value* slice_axis(AtenBuilder& aten, Value* x, int64_t dim, IntArg start, IntArg end, int64_t step,
                  std::optional<int64_t> size) {
  const auto is_number = [](const IntArg& i) { return i.value == nullptr; };
  if (step < 0) {
    // torch has no negative steps. Behind a flip the element number i is number -1 - i, for i from either end.
    if (size && is_number(start)) start.number = std::max(start.number, -*size);  // ONNX takes the first, Python none
    x = aten("flip", x, IntArgs{dim});
    start = is_number(start) ? IntArg(~start.number) : aten.sub(-1, start);
    end = is_number(end) ? IntArg(~end.number) : aten.sub(-1, end);
    step = -step;
  }
  const bool from_first = is_number(start) && (start.number == 0 || start.number <= -size.value_or(kFar));
  const bool to_last = is_number(end) && end.number >= size.value_or(kFar);
  if (from_first && to_last && step == 1) return x;
  return aten("slice.Tensor", x, dim, from_first ? Arg(nullptr) : Arg(start), to_last ? Arg(nullptr) : Arg(end), step);
}

/// An input that is a list of integers, as int64; `count` times one where it is absent.
Value* int64_list(const OnnxNode& n, AtenBuilder& aten, std::string_view name, size_t count) {
  if (!n.has(name)) return aten("ones", IntArgs{static_cast<int64_t>(count)}, Kw{"dtype", DType::Int64});
  Value* list = n.input(name);
  return n.dtype(name) == DType::Int64 ? list : aten("to.dtype", list, DType::Int64);
}

/// Axes or steps that only the run tells: the places that are taken are computed as tensors.
Value* slice_at_run_time(const OnnxNode& n, AtenBuilder& aten, std::optional<std::vector<int64_t>> axes) {
  const int64_t rank = n.rank("data");
  const auto all = static_cast<size_t>(rank);
  Value* starts = int64_list(n, aten, "starts", 0);
  Value* ends = int64_list(n, aten, "ends", 0);
  Value* steps = int64_list(n, aten, "steps", axes ? axes->size() : all);
  if (!axes) {  // each axis gets its own bounds: those that are not sliced all of it
    Value* at = n.has("axes") ? aten("remainder.Scalar", int64_list(n, aten, "axes", 0), rank)
                              : aten("arange", aten.size(starts, 0));
    const Kw dtype{"dtype", DType::Int64};
    starts = aten("scatter.src", aten("zeros", IntArgs{rank}, dtype), 0, at, starts);
    ends = aten("scatter.src", aten("full", IntArgs{rank}, INT64_MAX, dtype), 0, at, ends);
    if (n.has("steps")) steps = aten("scatter.src", aten("ones", IntArgs{rank}, dtype), 0, at, steps);
    axes.emplace();
    for (int64_t axis = 0; axis < rank; ++axis) axes->push_back(axis);
  }
  Value* x = n.input("data");
  if (!n.has("steps")) {
    Value* first = aten("tonnx::tolist", starts);
    Value* last = aten("tonnx::tolist", ends);
    for (const int64_t axis : *axes) {
      x = aten("slice.Tensor", x, axis, aten("tonnx::list_item", first, axis), aten("tonnx::list_item", last, axis));
    }
    return x;
  }
  IntArgs known;
  for (const int64_t axis : *axes) known.push_back(n.size("data", axis));
  Value* sizes = aten.ints(known);
  Value* backwards = aten("to.dtype", aten("lt.Scalar", steps, 0), DType::Int64);
  Value* most = aten("sub.Tensor", sizes, backwards);
  const auto from_front = [&](Value* list) {
    return aten("where.self", aten("lt.Scalar", list, 0), aten("add.Tensor", list, sizes), list);
  };
  starts = aten("minimum", aten("clamp", from_front(starts), 0), most);
  ends = aten("minimum", aten("maximum", from_front(ends), aten("neg", backwards)), most);
  Value* whole = aten("div.Tensor_mode", aten("sub.Tensor", starts, ends), steps, Kw{"rounding_mode", "floor"});
  Value* counts = aten("tonnx::tolist", aten("clamp", aten("neg", whole), 0));
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    Value* numbers = aten("arange", aten("tonnx::list_item", counts, at));
    Value* distance = aten("mul.Tensor", numbers, aten("select.int", steps, 0, at));
    Value* places = aten("add.Tensor", distance, aten("select.int", starts, 0, at));
    x = selected_along(aten, x, n.dtype("data"), (*axes)[i], places);
  }
  return x;
}

/// Where only the run tells axes or steps, each axis is looked at.
bool expand_slice(const NodeView& n, OnnxEdit& edit) {
  if (n.find_rank("data") || single_size(n)) return false;
  const auto axes = axes_of(n);
  return !(axes && steps_of(n, axes->size())) && choose_rank(edit, n, {"data"}, from_to(1, 5));
}

Values lower_slice(const OnnxNode& n, AtenBuilder& aten) {
  if (const auto dim = single_size(n)) {
    for (const char* name : {"axes", "steps"}) (void)n.find_const_ints(name);
    return aten("sym_size.int", tensor_of(aten, find_shape_of_any_rank(n.value("data"))), *dim);
  }
  const auto axes = axes_of(n);
  const auto steps = axes ? steps_of(n, axes->size()) : std::nullopt;
  if (!axes || !steps) return slice_at_run_time(n, aten, axes);
  const IntArgs starts = n.int_args("starts", axes->size());
  const IntArgs ends = n.int_args("ends", axes->size());
  require(starts.size() == axes->size(), "{} starts for {} axes", starts.size(), axes->size());
  require(ends.size() == axes->size(), "{} ends for {} axes", ends.size(), axes->size());
  const Shape* shape = n.find_shape("data");
  const bool flips = std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step < 0; });
  const DType dtype = n.dtype("data"), kernel = flips ? kernel_type(dtype) : dtype;
  Value* x = cast(aten, n.input("data"), dtype, kernel);
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t axis = (*axes)[i];
    const auto size = shape ? shape->at(static_cast<size_t>(axis)).constant() : std::nullopt;
    x = slice_axis(aten, x, axis, starts[i], ends[i], (*steps)[i], size);
  }
  return cast(aten, x, kernel, dtype);
}

void up_slice_10(OnnxEdit& edit) {
  attribute_to_input(edit, "starts", 1);
  attribute_to_input(edit, "ends", 2);
  attribute_to_input(edit, "axes", 3);
}

void down_slice_10(OnnxEdit& edit) {
  if (edit.node().input(4) != nullptr) {
    const auto steps = edit.const_ints(4);
    if (!steps || std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step != 1; })) {
      edit.cannot("the older opset has no steps");
    }
    edit.node().resize_inputs(4);
  }
  input_to_attribute(edit, "axes", 3);
  input_to_attribute(edit, "ends", 2);
  input_to_attribute(edit, "starts", 1);
}

// Emission: slices and selects of one tensor, one on top of another, are one pair of brackets.

bool is_simple(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

/// `1:`, `a + 1 : b : 2`: formatters put spaces around the colons where a part is not a plain name or number.
std::string range_text(const Emission& e) {
  std::string start = e.has("start") ? e.text("start") : "";
  std::string end = e.has("end") ? e.text("end") : "";
  if (start == "0") start.clear();
  if (end == std::to_string(INT64_MAX)) end.clear();
  const std::string step = e.has("step") ? e.text("step") : "";
  if (is_simple(start) && is_simple(end) && is_simple(step)) {
    return start + ":" + end + (step.empty() ? "" : ":" + step);
  }
  std::string text = start + (start.empty() ? ":" : " :");
  if (!end.empty()) text += " " + end;
  if (!step.empty()) text += (end.empty() ? ": " : " : ") + step;
  return text;
}

struct Subscript {
  std::string of;
  int64_t rank = -1;               // of it; -1 where that is not known
  std::vector<std::string> items;  // one for each dimension of `of`; empty: all of it
  std::vector<size_t> dims;        // the dimensions that the result has, as numbers of items

  size_t item_at(int64_t dim) {
    while (dims.size() <= static_cast<size_t>(dim)) {
      dims.push_back(items.size());
      items.emplace_back();
    }
    return dims[static_cast<size_t>(dim)];
  }
};

Subscript subscript_of(const Emission& e) {
  const int64_t dim = e.find_int("dim").value_or(0);
  Subscript result;
  const auto inner = e.inside("self");
  if (inner && get_aten_op(inner->node()).op->subscript && inner->find_int("dim").value_or(0) >= 0) {
    result = subscript_of(*inner);
  }
  if (result.of.empty() || !result.items[result.item_at(dim)].empty()) {
    result = {};
    result.of = e.text("self", precedence::kAtom);
    const Value* self = e.value("self");
    if (self != nullptr) result.rank = self->type.rank().value_or(-1);
  }
  const size_t item = result.item_at(dim);
  if (e.signature().name == "select") {
    result.items[item] = e.text("index");
    result.dims.erase(result.dims.begin() + dim);
  } else {
    result.items[item] = range_text(e);
  }
  return result;
}

std::string emit_subscript(const Emission& e) {
  const int64_t dim = e.find_int("dim").value_or(0);
  if (dim < 0) {
    std::string text = e.text("self", precedence::kAtom) + "[..., ";
    text += e.signature().name == "select" ? e.text("index") : range_text(e);
    for (int64_t d = dim + 1; d < 0; ++d) text += ", :";
    return text + "]";
  }
  Subscript subscript = subscript_of(e);
  std::vector<std::string>& items = subscript.items;
  while (!items.empty() && items.back().empty()) items.pop_back();
  const auto first = std::find_if(items.begin(), items.end(), [](const std::string& item) { return !item.empty(); });
  const bool has_all = static_cast<int64_t>(items.size()) == subscript.rank && first - items.begin() > 1;
  if (has_all) items.erase(items.begin(), first - 1);
  for (std::string& item : items) {
    if (item.empty()) item = ":";
  }
  if (has_all) items[0] = "...";
  return subscript.of + "[" + joined(items) + "]";
}

constexpr OpsetStep kSliceHistory[] = {
    {.to = 10, .up = up_slice_10, .down = down_slice_10},
    {.to = 11},
    {.to = 13, .adds = kBFloat16},
};

/// Slice of everything, forwards
Value* same_of_slice(const Node& node) {
  if (!keeps_type(node)) return nullptr;
  if (!has(node, "steps")) return node.input(0);
  const auto steps = ints_of(node, "steps");
  const bool is_forward = steps && std::all_of(steps->begin(), steps->end(), [](int64_t step) { return step > 0; });
  return is_forward ? node.input(0) : nullptr;
}

constexpr OnnxOp kSliceOnnx[] = {
    {.sig = "Slice(T data, Tind starts, Tind ends, Tind? axes, Tind? steps) -> T output",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .history = kSliceHistory,
     .infer = infer_slice,
     .open = open_slice,
     .eval = eval_slice,
     .same = same_of_slice,
     .lower = lower_slice,
     .expand = expand_slice},
};

constexpr AtenOp kSliceAten[] = {
    {.sig = "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
            "Tensor(a)",
     .types = types_slice,
     .view = ViewRule::Slice,
     .emit = emit_subscript,
     .subscript = true,
     .raise = raise_slice},
    {.sig = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
     .types = types_select,
     .view = ViewRule::Select,
     .emit = emit_subscript,
     .subscript = true,
     .raise = raise_select},
};

}  // namespace

extern const OpFamily kSliceOps;
constinit const OpFamily kSliceOps{"slice", kSliceOnnx, kSliceAten};

}  // namespace tonnx
