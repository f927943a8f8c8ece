// slice_raise.cpp - PyTorch's parts of tensors, and what writes to them, as ONNX.
#include <algorithm>
#include <numeric>

#include "base/budget.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/move/rows.h"

namespace tonnx {

Values raise_slice(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  const IntArg start = n.find_int_arg("start").value_or(0), end = n.find_int_arg("end").value_or(kEnd);
  const IntArg step = n.int_arg("step");
  Value* x = n.input("self");
  // what has all its elements still is the same, whatever the bounds say
  if (step.is(1) && n.shape("self") == n.output_shape()) return x;
  if (step.value == nullptr) return onnx.slice(x, dim, start, end, step.number);
  return onnx("Slice", {x, onnx.list(start), onnx.list(end), onnx.ints({dim}), step.value});
}

Values raise_select(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx.gather(n.input("self"), onnx.scalar(n.int_arg("index")), n.dim("dim", "self"));
}

namespace {

bool is_from_front(const IntArg& place) {
  if (place.value == nullptr) return place.number >= 0;
  return place.value->known_ints && place.value->known_ints->front().is_non_negative();
}

/// A place that may count from the end, counted from the front.
IntArg from_front(OnnxBuilder& onnx, const IntArg& place, const IntArg& size) {
  if (is_from_front(place)) return place;
  if (place.value == nullptr) return onnx.add(size, place);
  Value* is_negative = onnx("Less", {place.value, onnx.ints({0})});
  return onnx.where(is_negative, onnx.list(onnx.add(place, size)), place.value);
}

}  // namespace

Values raise_narrow(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  const bool is_tensor = n.is_tensor("start");
  IntArg start = is_tensor ? IntArg(onnx.reshape(n.input_as("start", DType::Int64), IntArgs{1})) : n.int_arg("start");
  const IntArg length = n.int_arg("length");
  Value* x = n.input("self");
  if (n.shape("self") == n.output_shape()) return x;
  start = from_front(onnx, start, onnx.size(x, dim));
  return onnx.slice(x, dim, start, onnx.add(start, length));
}

namespace {

/// Parts one after another along a dimension, of the sizes that PyTorch says.
Values split(const AtenNode& n, OnnxBuilder& onnx, int64_t dim, const IntArgs& sizes) {
  Value* x = n.input("self");
  if (sizes.size() == 1) return x;
  return onnx.all(sizes.size(), "Split", {x, onnx.list(sizes)}, {{"axis", dim}});
}

Values split_as_typed(const AtenNode& n, OnnxBuilder& onnx, int64_t dim) {
  IntArgs sizes;
  for (size_t i = 0; i < n.output_count(); ++i)
    sizes.push_back(onnx.int_of(n.output_shape(i).at(static_cast<size_t>(dim))));
  return split(n, onnx, dim, sizes);
}

/// Parts of which the last ones may have fewer elements, or none, where the size of the dimension is small.
Values split_as_far_as_there_is(const AtenNode& n, OnnxBuilder& onnx, int64_t dim) {
  Value* x = n.input("self");
  const auto count = static_cast<int64_t>(n.output_count());
  const IntArg each = onnx.int_of(ceil_div(n.shape("self").at(static_cast<size_t>(dim)), Dim(count)));
  Values parts{};
  for (int64_t i = 0; i < count; ++i) {
    const IntArg end = i + 1 < count ? onnx.mul(each, i + 1) : IntArg(kEnd);
    parts.push_back(n.wants_output(static_cast<size_t>(i)) ? onnx.slice(x, dim, onnx.mul(each, i), end) : nullptr);
  }
  return parts;
}

}  // namespace

Values raise_split_with_sizes(const AtenNode& n, OnnxBuilder& onnx) {
  return split(n, onnx, n.dim("dim", "self"), n.int_args("split_sizes"));
}

/// How many, where, how large: the types of the parts say it.
Values raise_split(const AtenNode& n, OnnxBuilder& onnx) {
  for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
  const std::string_view op = n.node().op.view();
  if (op == "hsplit") return split_as_typed(n, onnx, n.rank("self") > 1 ? 1 : 0);
  if (op == "vsplit") return split_as_typed(n, onnx, 0);
  if (op == "dsplit") return split_as_typed(n, onnx, 2);
  const int64_t dim = n.dim("dim", "self");
  const Dim& whole = n.shape("self").at(static_cast<size_t>(dim));
  const size_t count = n.output_count();
  // three parts of 4 elements are two, of two elements each
  if (op == "chunk" && count > 2 && !whole.is_constant() && !exact_div(whole, Dim(static_cast<int64_t>(count))))
    return split_as_far_as_there_is(n, onnx, dim);
  return split_as_typed(n, onnx, dim);
}

/// Parts between places, which need not ascend: what lies between 3 and 1 is nothing, and what is behind 1 comes twice.
Values raise_split_at(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string_view op = n.node().op.view();
  const int64_t dim = op == "hsplit"   ? (n.rank("self") > 1 ? 1 : 0)
                      : op == "vsplit" ? 0
                      : op == "dsplit" ? 2
                                       : n.dim("dim", "self");
  IntArgs places;
  if (op != "tensor_split" || n.node().overload.view() == "indices") {
    places = n.int_args("indices");
  } else {
    Value* given = n.input_as("tensor_indices_or_sections", DType::Int64);
    if (onnx.rank(given) == 0) return split_as_typed(n, onnx, dim);
    for (size_t i = 0; i + 1 < n.output_count(); ++i) {
      const auto at = static_cast<int64_t>(i);
      places.emplace_back(onnx.slice(given, 0, at, at + 1));
    }
  }
  const auto size = n.shape("self").at(static_cast<size_t>(dim)).constant();
  int64_t before = 0;
  const bool ascends = size && std::all_of(places.begin(), places.end(), [&](const IntArg& place) {
                         const bool fits = !place.value && place.number >= before && place.number <= *size;
                         before = place.number;
                         return fits;
                       });
  if (ascends) return split_as_typed(n, onnx, dim);
  Values results{};
  for (size_t i = 0; i <= places.size(); ++i) {
    const IntArg start = i == 0 ? IntArg(0) : places[i - 1], end = i == places.size() ? IntArg(kEnd) : places[i];
    results.push_back(onnx.slice(n.input("self"), dim, start, end));
  }
  return results;
}

Values raise_unbind(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  Value* x = n.input("self");
  Values results{};
  for (size_t i = 0; i < n.output_count(); ++i) {
    const bool wanted = n.wants_output(i);
    results.push_back(wanted ? onnx.gather(x, onnx.integer(DType::Int64, static_cast<int64_t>(i)), dim) : nullptr);
  }
  return results;
}

namespace {

/// `self` with `src` in place of its elements `start`, `start + 1` ... of a dimension.
Value* replaced(OnnxBuilder& onnx, Value* self, Value* src, int64_t dim, const IntArg& start, const IntArg& end) {
  std::vector<Value*> parts;
  if (!start.is(0)) parts.push_back(onnx.slice(self, dim, 0, start));
  parts.push_back(src);
  if (!end.is(kEnd)) parts.push_back(onnx.slice(self, dim, end, kEnd));
  return onnx.concat(parts, dim);
}

/// `self` with `src` at these places, a list, of a dimension.
Value* replaced_at(OnnxBuilder& onnx, Value* self, Value* src, int64_t dim, Value* places) {
  const std::vector<int64_t> order = moved_axis(onnx.rank(self), dim, 0);
  Value* written =
      onnx("ScatterND", {onnx.transpose(self, order), onnx.unsqueeze(places, {1}), onnx.transpose(src, order)});
  return onnx.transpose(written, inverted(order));
}

/// A bound of a slice as a place from 0 to the size.
IntArg clamped(OnnxBuilder& onnx, const IntArg& bound, const IntArg& size) {
  if (bound.is(0) || bound.is(kEnd)) return bound.is(0) ? bound : size;
  if (bound.value == nullptr && size.value == nullptr) {
    const int64_t from_front = bound.number < 0 ? bound.number + size.number : bound.number;
    return std::clamp<int64_t>(from_front, 0, size.number);
  }
  return onnx.min(onnx.max(from_front(onnx, bound, size), 0), size);
}

Values raise_slice_scatter(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  Value* self = n.input("self");
  Value* src = broadcast(onnx, n.input_as("src", n.dtype("self")), onnx_shape(n.type("src")));
  const int64_t step = n.i("step");
  const IntArg first = n.find_int_arg("start").value_or(0), last = n.find_int_arg("end").value_or(kEnd);
  if (step == 1 && n.shape("src") == n.shape("self")) return src;
  const auto at = static_cast<size_t>(dim);
  if (n.shape("src").at(at).is(0)) return self;
  const IntArg size = onnx.size(self, dim);
  const IntArg start = clamped(onnx, first, size);
  if (step == 1) {
    const bool to_the_end =
        last.is(kEnd) || (last.value == nullptr && size.value == nullptr && last.number >= size.number);
    return replaced(onnx, self, src, dim, start, to_the_end ? IntArg(kEnd) : onnx.add(start, onnx.size(src, dim)));
  }
  const IntArg end = clamped(onnx, last, size);
  Value* places = onnx("Range", {onnx.scalar(start), onnx.scalar(end), onnx.integer(DType::Int64, step)});
  return replaced_at(onnx, self, src, dim, places);
}

Values raise_select_scatter(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  Value* self = n.input("self");
  Value* src = onnx.unsqueeze(n.input_as("src", n.dtype("self")), {dim});
  const IntArg index = n.int_arg("index");
  if (dim == 0) return onnx("ScatterND", {self, onnx.unsqueeze(onnx.list(index), {1}), src});
  const IntArg size = onnx.size(self, dim);
  if (size.is(1)) return src;
  if (index.value != nullptr) return replaced_at(onnx, self, src, dim, index.value);
  if (size.value == nullptr && kernel_dtype("Where", onnx.dtype(self)) == onnx.dtype(self)) {
    std::vector<double> mask(room_for<double>({size.number}), 0);
    mask.at(static_cast<size_t>(index.number < 0 ? index.number + size.number : index.number)) = 1;
    std::vector<int64_t> dims(static_cast<size_t>(onnx.rank(self) - dim), 1);
    dims[0] = size.number;
    return onnx.where(onnx.numbers(DType::Bool, dims, mask), src, self);
  }
  return replaced(onnx, self, src, dim, index, index.is(-1) ? IntArg(kEnd) : onnx.add(index, 1));
}

constexpr AtenOp kAtenSliceAten[] = {
    {.sig = "aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
     .types = types_narrow,
     .view = ViewRule::Narrow,
     .python = "torch.narrow",
     .raise = raise_narrow},
    {.sig = "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
     .types = types_split,
     .view = ViewRule::Split,
     .python = "torch.split",
     .raise = raise_split},
    {.sig = "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
     .types = types_tensor_split,
     .view = ViewRule::Split,
     .python = "torch.ops.aten.tensor_split",
     .raise = raise_split},
    {.sig = "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
     .types = types_split_at,
     .view = ViewRule::Split,
     .python = "torch.ops.aten.tensor_split",
     .raise = raise_split_at},
    {.sig = "aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int "
            "dim=0) -> Tensor(a)[]",
     .view = ViewRule::Split,
     .python = "torch.ops.aten.tensor_split",
     .raise = raise_split_at},
    {.sig = "aten::hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
     .view = ViewRule::HSplit,
     .python = "torch.ops.aten.hsplit",
     .raise = raise_split},
    {.sig = "aten::hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
     .view = ViewRule::HSplit,
     .python = "torch.ops.aten.hsplit",
     .raise = raise_split_at},
    {.sig = "aten::vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
     .view = ViewRule::VSplit,
     .python = "torch.ops.aten.vsplit",
     .raise = raise_split},
    {.sig = "aten::vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
     .view = ViewRule::VSplit,
     .python = "torch.ops.aten.vsplit",
     .raise = raise_split_at},
    {.sig = "aten::dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
     .view = ViewRule::DSplit,
     .python = "torch.ops.aten.dsplit",
     .raise = raise_split},
    {.sig = "aten::dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
     .view = ViewRule::DSplit,
     .python = "torch.ops.aten.dsplit",
     .raise = raise_split_at},
    {.sig = "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.select_scatter",
     .raise = raise_select_scatter,
     .raise_complex = raise_each_part},
    {.sig = "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
            "step=1) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.slice_scatter",
     .raise = raise_slice_scatter,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kAtenSliceOps;
constinit const OpFamily kAtenSliceOps{"aten_slice", {}, kAtenSliceAten};

}  // namespace tonnx
