// raise.cpp - reading of elements at places that tensors say, as ONNX.
#include <algorithm>
#include <numeric>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/index/rows.h"
#include "ops/index/subscript.h"

namespace tonnx {

Value* true_places(OnnxBuilder& onnx, Value* mask) { return onnx("NonZero", {onnx.cast(mask, DType::Bool)}); }

std::vector<int64_t> Subscript::order(int64_t rank) const {
  std::vector<int64_t> order = dims;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) order.push_back(i);
  }
  return order;
}

IntArgs Subscript::sizes(OnnxBuilder& onnx) const {
  IntArgs result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const size_t from_end = shape.size() - axis;
    Value* source = nullptr;
    for (Value* index : indices) {
      const Shape& own = onnx.shape(index);
      if (own.size() >= from_end && own[own.size() - from_end] == shape[axis]) source = index;
    }
    ensure(source != nullptr, "no index has the size to which all are broadcast");
    result.push_back(onnx.size(source, onnx.rank(source) - static_cast<int64_t>(from_end)));
  }
  return result;
}

Value* Subscript::stacked(OnnxBuilder& onnx) const {
  std::vector<Value*> columns;
  for (Value* index : indices) {
    if (indices.size() > 1 && onnx.shape(index) != shape) index = onnx("Expand", {index, onnx.list(sizes(onnx))});
    columns.push_back(onnx.unsqueeze(index, {onnx.rank(index)}));
  }
  return onnx.concat(columns, static_cast<int64_t>(shape.size()));
}

Subscript read_subscript(const AtenNode& n, OnnxBuilder& onnx, bool keep_mask) {
  Subscript result;
  const CheckedList<Value*> given = n.inputs("indices");
  const auto count = std::count_if(given.begin(), given.end(), [](const Value* index) { return index != nullptr; });
  int64_t dim = 0;
  bool gap = false;
  for (Value* index : given) {
    if (index == nullptr) {
      gap = !result.dims.empty();
      ++dim;
      continue;
    }
    if (gap) result.adjacent = false;
    const DType dtype = onnx.dtype(index);
    if (dtype != DType::Bool && dtype != DType::UInt8) {
      result.dims.push_back(dim++);
      result.indices.push_back(onnx.cast(index, DType::Int64));
      result.shape = broadcast_shape(result.shape, onnx.shape(index));
      continue;
    }
    const int64_t rank = onnx.rank(index);
    if (rank == 0) n.cannot("a mask without dimensions");
    for (int64_t i = 0; i < rank; ++i) result.dims.push_back(dim + i);
    dim += rank;
    if (count == 1 && keep_mask) {
      result.mask = onnx.cast(index, DType::Bool);
      result.mask_rank = rank;
      continue;
    }
    Value* places = true_places(onnx, index);
    for (int64_t i = 0; i < rank; ++i) result.indices.push_back(onnx.gather(places, onnx.integer(DType::Int64, i), 0));
    result.shape = broadcast_shape(result.shape, Shape{onnx.shape(places)[1]});
  }
  require(dim <= n.rank("self"), "{} indices for {} dimensions", dim, n.rank("self"));
  return result;
}

namespace {

/// The elements where a mask of some dimensions, side by side, is true.
Value* masked(OnnxBuilder& onnx, Value* x, const Subscript& at) {
  const auto first = static_cast<size_t>(at.dims[0]), count = static_cast<size_t>(at.mask_rank);
  const Shape& shape = onnx.shape(x);
  if (count == 1) return in_kernel_dtype(onnx, "Compress", {x}, {at.mask}, {{"axis", at.dims[0]}});
  Value* mask = flat(onnx, at.mask);
  if (first == 0 && count == shape.size()) return in_kernel_dtype(onnx, "Compress", {x}, {mask});
  IntArgs sizes;
  for (size_t i = 0; i < first; ++i) sizes.push_back(onnx.size(x, static_cast<int64_t>(i)));
  sizes.emplace_back(-1);
  for (size_t i = first + count; i < shape.size(); ++i) sizes.push_back(onnx.size(x, static_cast<int64_t>(i)));
  // where another size is 0, that of the dimensions that become one must be said
  if (std::any_of(sizes.begin(), sizes.end(), [](const IntArg& size) { return size.is(0); })) {
    IntArg all = 1;
    for (size_t i = first; i < first + count; ++i) all = onnx.mul(all, onnx.size(x, static_cast<int64_t>(i)));
    sizes[first] = all;
  }
  return in_kernel_dtype(onnx, "Compress", {onnx.reshape(x, sizes)}, {mask}, {{"axis", at.dims[0]}});
}

Value* indexed(const AtenNode& n, OnnxBuilder& onnx, Value* x) {
  const Subscript at = read_subscript(n, onnx, true);
  if (at.mask != nullptr) return masked(onnx, x, at);
  if (at.dims.empty()) return x;
  if (at.dims.size() == 1) return onnx.gather(x, at.indices[0], at.dims[0]);
  const std::vector<int64_t> order = at.order(onnx.rank(x));
  Value* y = onnx("GatherND", {onnx.transpose(x, order), at.stacked(onnx)});
  if (at.place() == 0) return y;
  // the dimensions of the indices go to where the first of those that are indexed was
  const auto inner = static_cast<int64_t>(at.shape.size()), place = static_cast<int64_t>(at.place());
  std::vector<int64_t> back;
  for (int64_t i = 0; i < place; ++i) back.push_back(inner + i);
  for (int64_t i = 0; i < inner; ++i) back.push_back(i);
  for (int64_t i = inner + place; i < onnx.rank(y); ++i) back.push_back(i);
  return onnx.transpose(y, back);
}

}  // namespace

Values raise_index(const AtenNode& n, OnnxBuilder& onnx) { return indexed(n, onnx, n.input("self")); }

Values raise_index_select(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  Value* index = at_least_1d(onnx, n.input("index"));
  if (n.rank("self") > 0) return onnx.gather(n.input("self"), index, dim);
  return onnx.reshape(onnx.gather(at_least_1d(onnx, n.input("self")), index, 0), Shape{});
}

Values raise_gather(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"sparse_grad"});
  const int64_t dim = n.dim("dim", "self");
  if (element_count(n.shape("index")) == 0)  // of any rank
    return filled(onnx, onnx.ints_of(n.output_shape()), n.dtype("self"), 0);
  Value* x = at_least_1d(onnx, n.input("self"));
  Value* index = at_least_1d(onnx, n.input_as("index", DType::Int64));
  Value* y = onnx("GatherElements", {x, index}, {{"axis", dim}});
  return n.rank("index") == 0 ? onnx.squeeze(y, {0}) : y;
}

Values raise_embedding(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"padding_idx", "scale_grad_by_freq", "sparse"});
  return onnx.gather(n.input("weight"), n.input("indices"), 0);
}

Values raise_nonzero(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  if (n.rank("self") == 0) {
    const IntArg count = onnx.cast(onnx.unsqueeze(onnx.cast(x, DType::Bool), {0}), DType::Int64);
    return filled(onnx, IntArgs{count, 0}, DType::Int64, 0);
  }
  return onnx.transpose(true_places(onnx, x), {1, 0});
}

namespace {

Values raise_nonzero_numpy(const AtenNode& n, OnnxBuilder& onnx) {
  Value* places = true_places(onnx, at_least_1d(onnx, n.input("self")));
  Values results{};
  for (size_t i = 0; i < n.output_count(); ++i)
    results.push_back(onnx.gather(places, onnx.integer(DType::Int64, static_cast<int64_t>(i)), 0));
  return results;
}

/// As many places as are asked for: what is missing is filled.
Values raise_nonzero_static(const AtenNode& n, OnnxBuilder& onnx) {
  const IntArg size = n.int_arg("size");
  const int64_t rank = n.rank("self");
  if (rank == 0) return filled(onnx, IntArgs{size, 0}, DType::Int64, 0);
  Value* places = onnx.transpose(true_places(onnx, n.input("self")), {1, 0});
  Value* more = onnx.expand(onnx.integer(DType::Int64, n.i("fill_value")), n.output_shape());
  return onnx.slice(onnx.concat({places, more}, 0), 0, 0, size);
}

Values raise_masked_select(const AtenNode& n, OnnxBuilder& onnx) {
  const Shape shape = broadcast_shape(n.shape("self"), n.shape("mask"));
  Value* x = at_least_1d(onnx, broadcast(onnx, n.input("self"), shape));
  Value* mask = flat(onnx, broadcast(onnx, n.input_as("mask", DType::Bool), shape));
  return in_kernel_dtype(onnx, "Compress", {x}, {mask});
}

Values raise_take(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx.gather(flat(onnx, n.input("self")), n.input("index"), 0);
}

Values raise_take_along_dim(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  Value* index = n.input_as("indices", DType::Int64);
  if (!n.has("dim")) return onnx("GatherElements", {flat(onnx, x), flat(onnx, index)}, {{"axis", int64_t{0}}});
  const int64_t dim = n.dim("dim", "self");
  const auto at = static_cast<size_t>(dim);
  Shape data = n.output_shape();
  data.at(at) = n.shape("self").at(at);
  x = broadcast(onnx, x, data);
  return onnx("GatherElements", {x, broadcast(onnx, index, n.output_shape())}, {{"axis", dim}});
}

Values raise_one_hot(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input_as("self", DType::Int64);
  const int64_t classes = n.i("num_classes");
  Value* depth = onnx.integer(DType::Int64, classes);
  if (classes < 0) {
    depth = onnx("Add", {onnx.reduce("ReduceMax", x, {}, false), onnx.integer(DType::Int64, 1)});
  }
  const bool is_scalar = onnx.rank(x) == 0;
  Value* y = onnx("OneHot", {at_least_1d(onnx, x), depth, onnx.ints({0, 1})});
  return is_scalar ? onnx.squeeze(y, {0}) : y;
}

/// x[...] where the mask is true, a number elsewhere: what the mask hides may be out of range.
Values raise_masked_index(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"indices"});
  Value* mask = n.input_as("mask", DType::Bool);
  const CheckedList<Value*> given = n.inputs("indices");
  std::vector<Value*> safe;
  Value* self = n.input("self");
  if (self->type.shape && element_count(onnx.shape(self)) == 0) n.cannot("a masked index of a tensor without elements");
  Value* zero = onnx.integer(DType::Int64, 0);
  for (size_t i = 0; i < given.size(); ++i)
    safe.push_back(given[i] ? onnx.where(mask, onnx.cast(given[i], DType::Int64), zero) : nullptr);
  Subscript at;
  for (size_t i = 0; i < safe.size(); ++i) {
    if (safe[i] == nullptr) n.cannot("a masked index that leaves out a dimension");
    at.dims.push_back(static_cast<int64_t>(i));
    at.indices.push_back(safe[i]);
    at.shape = broadcast_shape(at.shape, onnx.shape(safe[i]));
  }
  Value* y = onnx("GatherND", {self, at.stacked(onnx)});
  return pick(onnx, mask, y, n.input_as("fill", n.dtype("self")));
}

constexpr AtenOp kAtenIndexAten[] = {
    {.sig = "aten::nonzero_numpy(Tensor self) -> Tensor[]",
     .python = "torch.ops.aten.nonzero_numpy",
     .raise = raise_nonzero_numpy,
     .raise_complex = raise_with_flags},
    {.sig = "aten::argwhere(Tensor self) -> Tensor",
     .types = types_nonzero,
     .layout = Layout::Own,
     .python = "torch.argwhere",
     .raise = raise_nonzero,
     .raise_complex = raise_with_flags},
    {.sig = "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     .types = types_nonzero_static,
     .python = "torch.nonzero_static",
     .raise = raise_nonzero_static},
    {.sig = "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
     .types = types_masked_select,
     .python = "torch.masked_select",
     .raise = raise_masked_select,
     .raise_complex = raise_each_part},
    {.sig = "aten::take(Tensor self, Tensor index) -> Tensor",
     .types = types_take,
     .python = "torch.take",
     .raise = raise_take,
     .raise_complex = raise_each_part},
    {.sig = "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
     .types = types_take_along_dim,
     .python = "torch.take_along_dim",
     .raise = raise_take_along_dim},
    {.sig = "aten::one_hot(Tensor self, int num_classes=-1) -> Tensor",
     .types = types_one_hot,
     .python = "F.one_hot",
     .raise = raise_one_hot},
    {.sig = "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
     .types = types_index,
     .python = "torch.ops.aten._unsafe_masked_index",
     .raise = raise_masked_index},
};

}  // namespace

extern const OpFamily kAtenIndexOps;
constinit const OpFamily kAtenIndexOps{"aten_index", {}, kAtenIndexAten};

}  // namespace tonnx
