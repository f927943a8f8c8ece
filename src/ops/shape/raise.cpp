// raise.cpp - PyTorch's changes of shape and of the order of axes as ONNX.
#include <algorithm>
#include <numeric>

#include "ops/frame/aten_types.h"
#include "ops/move/rows.h"
#include "ops/shape/rows.h"

namespace tonnx {

/// The elements in the same order, in the shape that PyTorch says: view, reshape, flatten, unflatten ...
Values raise_reshaped(const AtenNode& n, OnnxBuilder& onnx) {
  for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
  const Shape& shape = n.output_shape();
  const auto open = std::count_if(shape.begin(), shape.end(), [](const Dim& size) { return !size.is_constant(); });
  const bool is_known = std::all_of(shape.begin(), shape.end(), [&](const Dim& size) { return onnx.can_make(size); });
  if (open > 1 && !is_known && !is_complex(n.output_dtype())) {  // numbers of the run, one of which may be -1
    for (const std::string_view argument : {"size", "shape"}) {
      if (n.node().find_attribute(argument) != nullptr) return onnx.reshape(n.input("self"), n.int_args(argument));
    }
  }
  return onnx.reshape(n.input("self"), onnx_shape(n.output_type()));
}

Values raise_expand(const AtenNode& n, OnnxBuilder& onnx) {
  for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
  return broadcast(onnx, n.input("self"), onnx_shape(n.output_type()));
}

Values raise_unsqueeze(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx.unsqueeze(n.input("self"), {AtenNode::normalized(n.i("dim"), n.rank("self") + 1)});
}

/// Of the dimensions that are named, or of all, those whose size is 1. What the program says of the result tells
/// whether a size that is not known is 1 as well.
Values raise_squeeze(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<int64_t> dims;
  if (n.node().overload == "dims") {
    const IntArgs given = n.int_args("dim");
    if (std::any_of(given.begin(), given.end(), [](const IntArg& dim) { return dim.value != nullptr; }))
      return onnx("Squeeze", {n.input("self"), onnx.list(given)});
  }
  if (n.node().overload.empty()) {
    dims.resize(static_cast<size_t>(n.rank("self")));
    std::iota(dims.begin(), dims.end(), 0);
  } else {
    dims = n.dims("dim", "self");
  }
  const Shape& shape = n.shape("self");
  if (shape.empty()) dims.clear();
  const auto size = [&](int64_t dim) -> const Dim& { return shape[static_cast<size_t>(dim)]; };
  std::erase_if(dims, [&](int64_t dim) { return size(dim).is_constant() && !size(dim).is(1); });
  const auto is_open = [&](int64_t dim) { return !size(dim).is_constant(); };
  // all sizes of 1, of which only the run tells: ONNX means the same without axes
  if (n.node().overload.empty() && std::any_of(dims.begin(), dims.end(), is_open))
    return onnx("Squeeze", {n.input("self")});
  const size_t gone = shape.size() - std::min(shape.size(), n.output_type().shape->size());
  if (dims.size() != gone) std::erase_if(dims, is_open);
  std::sort(dims.begin(), dims.end());
  return onnx.squeeze(n.input("self"), dims);
}

namespace {

/// In that order; the pairs of complex numbers stay behind.
Value* permuted(const AtenNode& n, OnnxBuilder& onnx, std::vector<int64_t> order) {
  Value* x = n.input("self");
  if (onnx.rank(x) > static_cast<int64_t>(order.size())) order.push_back(static_cast<int64_t>(order.size()));
  return onnx.transpose(x, std::move(order));
}

std::vector<int64_t> identity_order(int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Value* swapped(const AtenNode& n, OnnxBuilder& onnx, int64_t a, int64_t b) {
  std::vector<int64_t> order = identity_order(n.rank("self"));
  if (!order.empty()) std::swap(order.at(static_cast<size_t>(a)), order.at(static_cast<size_t>(b)));
  return permuted(n, onnx, std::move(order));
}

}  // namespace

Values raise_permute(const AtenNode& n, OnnxBuilder& onnx) { return permuted(n, onnx, n.dims("dims", "self")); }

Values raise_transpose(const AtenNode& n, OnnxBuilder& onnx) {
  return swapped(n, onnx, n.dim("dim0", "self"), n.dim("dim1", "self"));
}

/// The last two axes change places; of a vector PyTorch's t() is itself.
Values raise_matrix_transpose(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t rank = n.rank("self");
  Value* y = rank < 2 ? n.input("self") : swapped(n, onnx, rank - 2, rank - 1);
  const std::string_view op = n.node().op.view();
  const bool conjugates = op == "mH" || op == "adjoint" || op == "matrix_H";
  const DType dtype = n.dtype("self");
  if (!conjugates || (dtype != DType::Complex64 && dtype != DType::Complex128)) return y;
  return onnx("Mul", {y, onnx.numbers(onnx.dtype(y), {2}, {1, -1})});
}

Values raise_reversed_axes(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<int64_t> order = identity_order(n.rank("self"));
  std::reverse(order.begin(), order.end());
  return permuted(n, onnx, std::move(order));
}

Values raise_movedim(const AtenNode& n, OnnxBuilder& onnx) {
  const std::vector<int64_t> from = n.dims("source", "self"), to = n.dims("destination", "self");
  require(from.size() == to.size(), "there are {} dimensions to move, and {} places", from.size(), to.size());
  const auto rank = static_cast<size_t>(n.rank("self"));
  std::vector<int64_t> order(rank, -1);
  if (rank == 0) return n.input("self");
  for (size_t i = 0; i < from.size(); ++i) order.at(static_cast<size_t>(to[i])) = from[i];
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    axis = next++;
  }
  return permuted(n, onnx, std::move(order));
}

Values raise_view_dtype(const AtenNode& n, OnnxBuilder& onnx) {
  const DType from = n.dtype("self"), to = n.output_dtype();
  n.ignore({"dtype"});
  if (from == to) return n.input("self");
  // BitCast takes no bool, whose bytes are 0 and 1
  if (from == DType::Bool && (to == DType::UInt8 || to == DType::Int8)) return onnx.cast(n.input("self"), to);
  const auto is_plain = [](DType dtype) { return info(dtype).kind != 'c' && dtype != DType::Bool; };
  if (!is_plain(from) || !is_plain(to) || info(from).bits != info(to).bits)
    n.cannot("a view of {} as {}", info(from).name, info(to).name);
  return onnx("BitCast", {n.input("self")}, {{"to", static_cast<int64_t>(to)}});
}

/// As often as the list says, which may be longer than the tensor has dimensions (repeat), or shorter (tile).
Values raise_repeat(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_tile = n.node().op.view() == "tile";
  IntArgs repeats = n.int_args(is_tile ? "dims" : "repeats");
  Value* x = n.input("self");
  const auto rank = static_cast<size_t>(n.rank("self"));
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), IntArg(1));
  std::vector<int64_t> added(repeats.size() - rank);
  std::iota(added.begin(), added.end(), 0);
  x = onnx.unsqueeze(x, added);
  if (std::all_of(repeats.begin(), repeats.end(), [](const IntArg& count) { return count.is(1); })) return x;
  if (onnx.rank(x) > static_cast<int64_t>(repeats.size())) repeats.emplace_back(1);
  return in_kernel_dtype(onnx, "Tile", {x}, {onnx.list(repeats)});
}

namespace {

Value* flipped(OnnxBuilder& onnx, Value* x, const std::vector<int64_t>& dims) {
  if (dims.empty() || onnx.rank(x) == 0) return x;
  const std::vector<int64_t> ones(dims.size(), -1), start(dims.size(), INT64_MIN + 1);
  return onnx("Slice", {x, onnx.ints(ones), onnx.ints(start), onnx.ints(dims), onnx.ints(ones)});
}

}  // namespace

Values raise_flip(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string_view op = n.node().op.view();
  if (op == "fliplr") return flipped(onnx, n.input("self"), {1});
  if (op == "flipud") return flipped(onnx, n.input("self"), {0});
  if (n.rank("self") == 0) n.ignore({"dims"});
  return flipped(onnx, n.input("self"), n.dims("dims", "self"));
}

Values raise_rot90(const AtenNode& n, OnnxBuilder& onnx) {
  const std::vector<int64_t> dims = n.dims("dims", "self");
  require(dims.size() == 2, "rot90 has {} dimensions and not 2", dims.size());
  const int64_t k = ((n.i("k") % 4) + 4) % 4;
  Value* x = n.input("self");
  if (k == 2) return flipped(onnx, x, dims);
  if (k == 0) return x;
  x = flipped(onnx, x, {k == 1 ? dims[1] : dims[0]});
  return onnx.swap_axes(x, dims[0], dims[1]);
}

namespace {

Value* rolled(OnnxBuilder& onnx, Value* x, int64_t axis, const IntArg& shift) {
  const IntArg size = onnx.size(x, axis);
  if (size.is(0) || size.is(1) || shift.is(0)) return x;
  IntArg start = 0;
  if (size.value == nullptr && shift.value == nullptr) {
    start = ((-shift.number % size.number) + size.number) % size.number;
  } else if (shift.value == nullptr && (shift.number == 1 || shift.number == -1)) {
    start = -shift.number;  // one step fits any size
  } else {
    start = onnx("Mod", {onnx.list(onnx.sub(0, shift)), onnx.list(onnx.max(size, 1))});
  }
  if (start.is(0)) return x;
  return onnx.concat({onnx.slice(x, axis, start, kEnd), onnx.slice(x, axis, 0, start)}, axis);
}

}  // namespace

Values raise_roll(const AtenNode& n, OnnxBuilder& onnx) {
  const IntArgs shifts = n.int_args("shifts");
  const std::vector<int64_t> dims = n.dims("dims", "self");
  Value* x = n.input("self");
  if (n.rank("self") == 0) return x;
  if (dims.empty()) {
    require(shifts.size() == 1, "roll has {} shifts and no dimensions", shifts.size());
    return onnx.reshape(rolled(onnx, flat(onnx, x), 0, shifts[0]), n.output_shape());
  }
  require(shifts.size() == dims.size(), "roll has {} shifts and {} dimensions", shifts.size(), dims.size());
  for (size_t i = 0; i < dims.size(); ++i) x = rolled(onnx, x, dims[i], shifts[i]);
  return x;
}

namespace {

/// Half of each dimension comes around: the smaller half, or the larger one.
Values shifted(const AtenNode& n, OnnxBuilder& onnx, int64_t more) {
  std::vector<int64_t> dims = n.dims("dim", "self");
  if (!n.has("dim")) dims = identity_order(n.rank("self"));
  Value* x = n.input("self");
  if (n.rank("self") == 0) return x;
  for (const int64_t dim : dims) x = rolled(onnx, x, dim, onnx.floor_div(onnx.add(onnx.size(x, dim), more), 2));
  return x;
}

Values raise_fftshift(const AtenNode& n, OnnxBuilder& onnx) { return shifted(n, onnx, 0); }
Values raise_ifftshift(const AtenNode& n, OnnxBuilder& onnx) { return shifted(n, onnx, 1); }

}  // namespace

/// Sliding windows along one dimension, which become a dimension of their own behind the others.
Values raise_unfold(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t size = n.i("size"), step = n.positive("step");
  Value* x = n.input("self");
  const int64_t dim = n.dim("dimension", "self");
  if (n.rank("self") == 0) return onnx.slice(onnx.unsqueeze(x, {0}), 0, 0, size);
  const Dim& as_typed = n.output_shape().at(static_cast<size_t>(dim));
  const bool is_new = as_typed.symbol_name() && as_typed != n.shape("self").at(static_cast<size_t>(dim));
  const IntArg count =
      is_new ? onnx.add(onnx.floor_div(onnx.sub(onnx.size(x, dim), size), step), 1) : onnx.int_of(as_typed);
  Value* starts = onnx("Mul", {range_on(onnx, count, 0, 2), onnx.integer(DType::Int64, step)});
  Value* windows = onnx.gather(x, onnx("Add", {starts, range_on(onnx, size, 1, 2)}), dim);
  return onnx.transpose(windows, moved_axis(onnx.rank(windows), dim + 1, n.rank("self")));
}

Values raise_broadcast_tensors(const AtenNode& n, OnnxBuilder& onnx) {
  Values results{};
  const CheckedList<Value*> tensors = n.inputs("tensors");
  for (size_t i = 0; i < tensors.size(); ++i)
    results.push_back(broadcast(onnx, tensors[i], onnx_shape(n.output_type(i))));
  return results;
}

/// One tensor, or each of a list, with as many dimensions as its name says; PyTorch knows their places.
Values raise_atleast(const AtenNode& n, OnnxBuilder& onnx) {
  Values results{};
  const bool is_list = n.node().overload.view() == "Sequence";
  const CheckedList<Value*> tensors = is_list ? n.inputs("tensors") : CheckedList<Value*>{n.input("self")};
  for (size_t i = 0; i < tensors.size(); ++i) results.push_back(onnx.reshape(tensors[i], onnx_shape(n.output_type(i))));
  return results;
}

namespace {

/// `swaps`: the first two change places, as for the x and y of a picture.
Values mesh(const AtenNode& n, OnnxBuilder& onnx, bool swaps) {
  const CheckedList<Value*> tensors = n.inputs("tensors");
  const auto rank = static_cast<int64_t>(tensors.size());
  Values results{};
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = swaps && rank > 1 && i < 2 ? 1 - i : i;
    std::vector<int64_t> axes = identity_order(rank);
    axes.erase(axes.begin() + axis);
    Value* line = onnx.unsqueeze(flat(onnx, tensors[static_cast<size_t>(i)]), axes);
    results.push_back(broadcast(onnx, line, n.output_shape(static_cast<size_t>(i))));
  }
  return results;
}

Values raise_meshgrid(const AtenNode& n, OnnxBuilder& onnx) { return mesh(n, onnx, false); }
Values raise_meshgrid_indexing(const AtenNode& n, OnnxBuilder& onnx) { return mesh(n, onnx, n.s("indexing") == "xy"); }

constexpr AtenOp kAtenShapeAten[] = {
    {.sig = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
     .types = types_view,
     .view = ViewRule::View,
     .python = ".view",
     .raise = raise_reshaped},
    {.sig = "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = ".clone",
     .raise = raise_nothing},
    {.sig = "aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
     .types = types_reshape_as,
     .view = ViewRule::View,
     .python = ".view_as",
     .raise = raise_reshaped},
    {.sig = "aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
     .types = types_reshape_as,
     .view = ViewRule::Reshape,
     .python = ".reshape_as",
     .raise = raise_reshaped},
    {.sig = "aten::_reshape_copy(Tensor self, SymInt[] size) -> Tensor",
     .types = types_view,
     .python = ".reshape",
     .raise = raise_reshaped},
    {.sig = "aten::ravel(Tensor(a) self) -> Tensor(a)",
     .types = types_ravel,
     .view = ViewRule::Reshape,
     .python = "torch.ravel",
     .raise = raise_reshaped},
    {.sig = "aten::atleast_1d(Tensor self) -> Tensor",
     .types = types_at_least<1>,
     .view = ViewRule::View,
     .python = "torch.atleast_1d",
     .raise = raise_atleast},
    {.sig = "aten::atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
     .view = ViewRule::View,
     .python = "torch.atleast_1d",
     .raise = raise_atleast},
    {.sig = "aten::atleast_2d(Tensor self) -> Tensor",
     .types = types_at_least<2>,
     .view = ViewRule::View,
     .python = "torch.atleast_2d",
     .raise = raise_atleast},
    {.sig = "aten::atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
     .view = ViewRule::View,
     .python = "torch.atleast_2d",
     .raise = raise_atleast},
    {.sig = "aten::atleast_3d(Tensor self) -> Tensor",
     .types = types_at_least<3>,
     .view = ViewRule::View,
     .python = "torch.atleast_3d",
     .raise = raise_atleast},
    {.sig = "aten::atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
     .view = ViewRule::View,
     .python = "torch.atleast_3d",
     .raise = raise_atleast},
    {.sig = "aten::mT(Tensor(a) self) -> Tensor(a)",
     .types = types_transposed,
     .view = ViewRule::Transposed,
     .python = "torch.ops.aten.mT",
     .raise = raise_matrix_transpose},
    {.sig = "aten::mH(Tensor(a) self) -> Tensor(a)",
     .types = types_transposed,
     .view = ViewRule::Transposed,
     .python = "torch.ops.aten.mH",
     .raise = raise_matrix_transpose},
    {.sig = "aten::adjoint(Tensor(a) self) -> Tensor(a)",
     .types = types_transposed,
     .view = ViewRule::Transposed,
     .python = "torch.adjoint",
     .raise = raise_matrix_transpose},
    {.sig = "aten::matrix_H(Tensor(a) self) -> Tensor(a)",
     .types = types_transposed,
     .view = ViewRule::Transposed,
     .python = "torch.ops.aten.matrix_H",
     .raise = raise_matrix_transpose},
    {.sig = "aten::numpy_T(Tensor(a) self) -> Tensor(a)",
     .types = types_reversed,
     .view = ViewRule::Reversed,
     .python = "torch.ops.aten.numpy_T",
     .raise = raise_reversed_axes},
    {.sig = "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
     .types = types_movedim,
     .view = ViewRule::Movedim,
     .python = "torch.movedim",
     .raise = raise_movedim},
    {.sig = "aten::tile(Tensor self, SymInt[] dims) -> Tensor",
     .types = types_tile,
     .python = "torch.tile",
     .raise = raise_repeat},
    {.sig = "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Channels,
     .python = "torch.roll",
     .raise = raise_roll},
    {.sig = "aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Channels,
     .python = "torch.fft.fftshift",
     .raise = raise_fftshift},
    {.sig = "aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Channels,
     .python = "torch.fft.ifftshift",
     .raise = raise_ifftshift},
    {.sig = "aten::fliplr(Tensor self) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.fliplr",
     .raise = raise_flip},
    {.sig = "aten::flipud(Tensor self) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.flipud",
     .raise = raise_flip},
    {.sig = "aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
     .types = types_rot90,
     .layout = Layout::Own,
     .python = "torch.rot90",
     .raise = raise_rot90},
    {.sig = "aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]",
     .types = types_broadcast_tensors,
     .python = "torch.ops.aten.broadcast_tensors",
     .raise = raise_broadcast_tensors},
    {.sig = "aten::meshgrid(Tensor[] tensors) -> Tensor[]",
     .types = types_meshgrid,
     .python = "torch.ops.aten.meshgrid",
     .raise = raise_meshgrid},
    {.sig = "aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
     .types = types_meshgrid,
     .python = "torch.ops.aten.meshgrid",
     .raise = raise_meshgrid_indexing},
};

}  // namespace

extern const OpFamily kAtenShapeOps;
constinit const OpFamily kAtenShapeOps{"aten_shape", {}, kAtenShapeAten};

}  // namespace tonnx
