// join_raise.cpp - PyTorch's ways to make one tensor of many as ONNX.
#include "base/checked_int.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/node_view.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

/// Of the element type of the result.
std::vector<Value*> parts_of(const AtenNode& n, OnnxBuilder& onnx) {
  CheckedList<Value*> parts = n.inputs("tensors");
  require(!parts.empty(), "there are no tensors to join");
  const DType dtype = n.output_dtype();
  const bool is_complex = dtype == DType::Complex64 || dtype == DType::Complex128;
  for (Value*& part : parts) {
    require(part != nullptr, "a tensor to join is None");
    if (!is_complex) part = onnx.cast(part, dtype);
  }
  return parts;
}

/// With sizes of 1 in front.
Value* at_least_2d(OnnxBuilder& onnx, Value* x) {
  if (onnx.rank(x) == 0) return onnx.unsqueeze(x, {0, 1});
  return onnx.rank(x) == 1 ? onnx.unsqueeze(x, {0}) : x;
}

Value* at_least_3d(OnnxBuilder& onnx, Value* x) {
  x = at_least_2d(onnx, x);
  return onnx.rank(x) == 2 ? onnx.unsqueeze(x, {2}) : x;
}

}  // namespace

namespace {

/// One behind the other; a list of nothing joins tensors of any rank.
Value* concatenated(const AtenNode& n, OnnxBuilder& onnx, std::vector<Value*> parts, int64_t dim) {
  const Shape shape = onnx_shape(n.output_type());
  Value* first = parts[0];
  std::erase_if(parts, [&](const Value* part) {
    const Shape& sizes = onnx.shape(part);
    return sizes.size() != shape.size() || (sizes.size() == 1 && sizes[0].is(0));
  });
  return parts.empty() ? first : onnx.concat(parts, dim);
}

}  // namespace

Values raise_cat(const AtenNode& n, OnnxBuilder& onnx) {
  const auto rank = static_cast<int64_t>(n.output_shape().size());
  return concatenated(n, onnx, parts_of(n, onnx), AtenNode::normalized(n.i("dim"), rank));
}

Values raise_stack(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<Value*> parts = parts_of(n, onnx);
  const int64_t dim = AtenNode::normalized(n.i("dim"), static_cast<int64_t>(n.output_shape().size()));
  for (Value*& part : parts) part = onnx.unsqueeze(part, {dim});
  return onnx.concat(parts, dim);
}

namespace {

Values raise_hstack(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<Value*> parts = parts_of(n, onnx);
  for (Value*& part : parts) part = at_least_1d(onnx, part);
  const int64_t dim = onnx.rank(parts[0]) == 1 ? 0 : 1;
  return concatenated(n, onnx, std::move(parts), dim);
}

Values raise_vstack(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<Value*> parts = parts_of(n, onnx);
  for (Value*& part : parts) part = at_least_2d(onnx, part);
  return onnx.concat(parts, 0);
}

Values raise_dstack(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<Value*> parts = parts_of(n, onnx);
  for (Value*& part : parts) part = at_least_3d(onnx, part);
  return onnx.concat(parts, 2);
}

Values raise_column_stack(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<Value*> parts = parts_of(n, onnx);
  for (Value*& part : parts) {
    if (onnx.rank(part) <= 1) part = onnx.reshape(part, IntArgs{-1, 1});
  }
  return onnx.concat(parts, 1);
}

/// Each with zeros to its left and right, one below the other.
Values raise_block_diag(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<Value*> parts = parts_of(n, onnx);
  std::vector<IntArg> widths;
  for (Value*& part : parts) {
    part = at_least_2d(onnx, part);
    widths.push_back(onnx.size(part, 1));
  }
  Value* zero = onnx.number(kernel_dtype("Pad", n.output_dtype()), 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    IntArg left = 0, right = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      if (k < i) left = onnx.add(left, widths[k]);
      if (k > i) right = onnx.add(right, widths[k]);
    }
    if (!left.is(0) || !right.is(0))
      parts[i] = in_kernel_dtype(onnx, "Pad", {parts[i]}, {onnx.list(IntArgs{0, left, 0, right}), zero});
  }
  return onnx.concat(parts, 0);
}

/// All pairs, triples ... with the last tensor running first.
Values raise_cartesian_prod(const AtenNode& n, OnnxBuilder& onnx) {
  const CheckedList<Value*> tensors = n.inputs("tensors");
  if (tensors.size() == 1) return tensors[0];
  if (tensors.size() > static_cast<size_t>(kMaxRank)) n.cannot("a product of {} tensors", tensors.size());
  const auto rank = static_cast<int64_t>(tensors.size());
  IntArgs sizes;
  for (Value* x : tensors) sizes.push_back(onnx.size(x, 0));
  std::vector<Value*> columns;
  for (int64_t i = 0; i < rank; ++i) {
    std::vector<int64_t> axes;
    for (int64_t k = 0; k <= rank; ++k) {
      if (k != i) axes.push_back(k);
    }
    IntArgs all = sizes;
    all[static_cast<size_t>(i)] = 1;
    all.emplace_back(1);
    columns.push_back(broadcast(onnx, onnx.unsqueeze(tensors[static_cast<size_t>(i)], axes), all));
  }
  return onnx.reshape(onnx.concat(columns, rank), IntArgs{-1, rank});
}

Values raise_combinations(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t r = n.i("r");
  const bool repeats = n.flag("with_replacement");
  if (r < 1 || r > kMaxRank) n.cannot("combinations of {}", r);
  Value* x = n.input("self");
  if (r == 1) return onnx.unsqueeze(x, {1});
  // the places of a grid of r axes whose coordinates ascend
  const IntArg size = onnx.size(x, 0);
  Value* ascend = nullptr;
  for (int64_t i = 0; i + 1 < r; ++i) {
    Value* pair = onnx(repeats ? "LessOrEqual" : "Less", {range_on(onnx, size, i, r), range_on(onnx, size, i + 1, r)});
    ascend = ascend ? onnx("And", {ascend, pair}) : pair;
  }
  Value* places = onnx("Transpose", {onnx("NonZero", {ascend})}, {{"perm", std::vector<int64_t>{1, 0}}});
  return onnx.gather(x, places, 0);
}

/// Each tensor in chunks of equal size, padded with zeros; the chunks of all side by side.
Values raise_chunk_cat(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t chunks = n.i("num_chunks");
  std::vector<Value*> parts = parts_of(n, onnx);
  require(chunks > 0, "there are {} chunks", chunks);
  const int64_t dim = AtenNode::normalized(n.i("dim"), onnx.rank(parts[0]));
  for (Value*& part : parts) {
    const auto size = onnx.shape(part).at(static_cast<size_t>(dim)).constant();
    if (!size) n.cannot("_chunk_cat along a size that is not known");
    const int64_t each = checked_add(*size, chunks - 1) / chunks, all = checked_mul(each, chunks);
    std::vector<int64_t> pads(static_cast<size_t>(2 * onnx.rank(part)), 0);
    pads[static_cast<size_t>(onnx.rank(part) + dim)] = all - *size;
    if (all != *size) {
      Value* zero = onnx.number(kernel_dtype("Pad", onnx.dtype(part)), 0);
      part = in_kernel_dtype(onnx, "Pad", {part}, {onnx.ints(pads), zero});
    }
    IntArgs sizes;
    for (int64_t i = 0; i < dim; ++i) sizes.push_back(onnx.size(part, i));
    sizes.emplace_back(chunks);
    sizes.emplace_back(-1);
    part = onnx.reshape(part, sizes);
  }
  return onnx.concat(parts, dim + 1);
}

constexpr AtenOp kAtenJoinAten[] = {
    {.sig = "aten::hstack(Tensor[] tensors) -> Tensor",
     .types = types_hstack,
     .layout = Layout::Channels,
     .python = "torch.hstack",
     .raise = raise_hstack},
    {.sig = "aten::vstack(Tensor[] tensors) -> Tensor",
     .types = types_vstack,
     .layout = Layout::Channels,
     .python = "torch.vstack",
     .raise = raise_vstack},
    {.sig = "aten::dstack(Tensor[] tensors) -> Tensor",
     .types = types_dstack,
     .layout = Layout::Channels,
     .python = "torch.dstack",
     .raise = raise_dstack},
    {.sig = "aten::column_stack(Tensor[] tensors) -> Tensor",
     .types = types_column_stack,
     .python = "torch.column_stack",
     .raise = raise_column_stack},
    {.sig = "aten::block_diag(Tensor[] tensors) -> Tensor",
     .types = types_block_diag,
     .python = "torch.ops.aten.block_diag",
     .raise = raise_block_diag},
    {.sig = "aten::cartesian_prod(Tensor[] tensors) -> Tensor",
     .types = types_cartesian_prod,
     .python = "torch.ops.aten.cartesian_prod",
     .raise = raise_cartesian_prod},
    {.sig = "aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
     .types = types_combinations,
     .python = "torch.combinations",
     .raise = raise_combinations},
    {.sig = "aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
     .python = "torch.ops.aten._chunk_cat",
     .raise = raise_chunk_cat},
};

}  // namespace

extern const OpFamily kAtenJoinOps;
constinit const OpFamily kAtenJoinOps{"aten_join", {}, kAtenJoinAten};

}  // namespace tonnx
