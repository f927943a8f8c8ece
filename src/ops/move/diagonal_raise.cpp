// diagonal_raise.cpp - PyTorch's triangles and diagonals as ONNX.
#include <algorithm>
#include <numeric>
#include <set>

#include "ops/frame/aten_names.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/result_dtype.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

Value* triangle(const AtenNode& n, OnnxBuilder& onnx, bool upper) {
  const IntArg diagonal = n.int_arg("diagonal");
  Value* x = n.input("self");
  return in_kernel_dtype(onnx, "Trilu", {x}, {diagonal.is(0) ? nullptr : onnx.scalar(diagonal)},
                         {{"upper", static_cast<int64_t>(upper)}});
}

/// These two behind all others.
std::vector<int64_t> order_with_last(int64_t rank, int64_t dim1, int64_t dim2) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != dim1 && i != dim2) order.push_back(i);
  }
  order.push_back(dim1);
  order.push_back(dim2);
  return order;
}

/// The diagonal of the last two dimensions, `length` long: elements of their rows, one after another, at equal steps.
Value* diagonal_of(OnnxBuilder& onnx, Value* x, int64_t offset, const Dim& length) {
  const int64_t rank = onnx.rank(x);
  IntArgs sizes;
  for (int64_t i = 0; i + 2 < rank; ++i) sizes.push_back(onnx.size(x, i));
  const IntArg rows = onnx.size(x, rank - 2), columns = onnx.size(x, rank - 1);
  sizes.push_back(onnx.mul(rows, columns));
  Value* line = onnx.reshape(x, sizes);
  const IntArg start = offset >= 0 ? IntArg(offset) : onnx.mul(columns, -offset), step = onnx.add(columns, 1);
  const IntArg end = onnx.add(start, onnx.mul(onnx.int_of(length), step));
  if (step.value == nullptr) return onnx.slice(line, rank - 2, start, end, step.number);
  return onnx("Slice", {line, onnx.list(start), onnx.list(end), onnx.ints({rank - 2}), step.value});
}

/// `line` on a diagonal of the last two dimensions of `around`, or of zeros where that is null.
Value* with_diagonal(OnnxBuilder& onnx, Value* line, Value* around, int64_t offset, const IntArg& rows,
                     const IntArg& columns) {
  const int64_t rank = onnx.rank(line) + 1;
  const DType dtype = onnx.dtype(line);
  // an element is found by its row if the diagonal begins in the first, and else by its column
  const int64_t axis = offset >= 0 ? rank - 2 : rank - 1;
  const IntArg missing = onnx.sub(offset >= 0 ? rows : columns, onnx.size(line, rank - 2));
  Value* placed = onnx.unsqueeze(line, {offset >= 0 ? rank - 1 : rank - 2});
  if (!missing.is(0)) {
    IntArgs pads(static_cast<size_t>(2 * rank), IntArg(0));
    pads[static_cast<size_t>(rank + axis)] = missing;
    placed = in_kernel_dtype(onnx, "Pad", {placed}, {onnx.list(pads), onnx.number(kernel_dtype("Pad", dtype), 0)});
  }
  Value* row = range_on(onnx, rows, 0, 2);
  if (offset != 0) row = onnx("Add", {row, onnx.integer(DType::Int64, offset)});
  Value* mask = onnx("Equal", {row, range_on(onnx, columns, 1, 2)});
  return pick(onnx, mask, placed, around ? around : onnx.number(dtype, 0));
}

Value* diagonal_between(const AtenNode& n, OnnxBuilder& onnx, Value* x, int64_t dim1, int64_t dim2) {
  const int64_t rank = onnx.rank(x);
  x = onnx.transpose(x, order_with_last(rank, dim1, dim2));
  return diagonal_of(onnx, x, n.i("offset"), n.output_shape().back());
}

}  // namespace

Values raise_tril(const AtenNode& n, OnnxBuilder& onnx) { return triangle(n, onnx, false); }
Values raise_triu(const AtenNode& n, OnnxBuilder& onnx) { return triangle(n, onnx, true); }

namespace {

Values raise_diagonal(const AtenNode& n, OnnxBuilder& onnx) {
  const char* self = n.node().op.view() == "linalg_diagonal" ? "A" : "self";
  return diagonal_between(n, onnx, n.input(self), n.dim("dim1", self), n.dim("dim2", self));
}

Value* embedded(OnnxBuilder& onnx, Value* line, int64_t offset) {
  const IntArg size = onnx.add(onnx.size(line, onnx.rank(line) - 1), std::abs(offset));
  return with_diagonal(onnx, line, nullptr, offset, size, size);
}

Values raise_diag_embed(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t rank = n.rank("self") + 1;
  const int64_t dim1 = AtenNode::normalized(n.i("dim1"), rank), dim2 = AtenNode::normalized(n.i("dim2"), rank);
  Value* y = embedded(onnx, n.input("self"), n.i("offset"));
  return onnx.transpose(y, inverted(order_with_last(rank, dim1, dim2)));
}

Values raise_diagflat(const AtenNode& n, OnnxBuilder& onnx) {
  return embedded(onnx, flat(onnx, n.input("self")), n.i("offset"));
}

Values raise_diag(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.rank("self") == 1) return embedded(onnx, n.input("self"), n.i("diagonal"));
  return diagonal_of(onnx, n.input("self"), n.i("diagonal"), n.output_shape().back());
}

Values raise_trace(const AtenNode& n, OnnxBuilder& onnx) {
  const Shape& shape = n.shape("self");
  const DType dtype = n.output_dtype();
  const DType kernel = is_float(dtype) && dtype != DType::Float64 ? DType::Float32 : dtype;
  Value* line = diagonal_of(onnx, n.input("self"), 0, min(shape.at(0), shape.at(1)));
  return onnx.cast(onnx.reduce("ReduceSum", onnx.cast(line, kernel), {0}, false), dtype);
}

Values raise_diagonal_scatter(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t rank = n.rank("self");
  const std::vector<int64_t> order = order_with_last(rank, n.dim("dim1", "self"), n.dim("dim2", "self"));
  Value* self = onnx.transpose(n.input("self"), order);
  Value* src = n.input_as("src", n.dtype("self"));
  Value* y = with_diagonal(onnx, src, self, n.i("offset"), onnx.size(self, rank - 2), onnx.size(self, rank - 1));
  return onnx.transpose(y, inverted(order));
}

/// All elements, as they follow each other.
bool keeps_rows(ViewRule rule) {
  constexpr ViewRule kKeeping[] = {ViewRule::View,      ViewRule::Reshape, ViewRule::Contiguous,
                                   ViewRule::Squeeze,   ViewRule::Same,    ViewRule::Real,
                                   ViewRule::Unsqueeze, ViewRule::Convert, ViewRule::Dropout};
  return std::find(std::begin(kKeeping), std::end(kKeeping), rule) != std::end(kKeeping);
}

/// Some of the elements, in that order.
bool takes_part(ViewRule rule) {
  constexpr ViewRule kParts[] = {ViewRule::Select, ViewRule::Slice,  ViewRule::Narrow, ViewRule::Split,
                                 ViewRule::Unbind, ViewRule::HSplit, ViewRule::VSplit, ViewRule::DSplit};
  return std::find(std::begin(kParts), std::end(kParts), rule) != std::end(kParts);
}

/// Whether the result lies row by row where the inputs do.
bool follows_inputs(const Node& node, const AtenOp& op) {
  if (is_elementwise(node) || op.layout == Layout::Inputs) return true;
  const Value* const result = node.outputs().empty() ? nullptr : node.output(0);
  return op.layout == Layout::Channels && result != nullptr && result->type.rank().value_or(0) >= 4;
}

/// Whether the tensor is known to lie row by row in memory of its own, as ONNX has it. What an elementwise operator
/// gives has memory of its own, in the order of what it was made of.
bool lies_row_by_row(const Value* x) {
  std::vector<std::pair<const Value*, bool>> waiting = {{x, false}};  // and whether its order is all that matters
  std::set<std::pair<const Value*, bool>> seen;
  while (!waiting.empty()) {
    const auto [value, in_order] = waiting.back();
    waiting.pop_back();
    const bool is_made = value != nullptr && value->producer != nullptr && value->type.is_tensor();
    if (!is_made || !seen.insert({value, in_order}).second) continue;
    const Node& node = *value->producer;
    const AtenOpEntry* const entry = find_canonical_op(node);
    if (entry == nullptr) continue;
    if (entry->op->layout == Layout::Own) return false;
    const ViewRule rule = entry->op->view;
    const Attribute* const format = node.find_attribute("memory_format");
    const auto* const name = format ? format->value.get<std::string>() : nullptr;
    if (rule == ViewRule::None && name != nullptr && *name == "contiguous_format") continue;
    const bool keeps = keeps_rows(rule) || (in_order && takes_part(rule));
    if (rule != ViewRule::None && !keeps) return false;
    const bool is_new = rule == ViewRule::None && follows_inputs(node, *entry->op);
    if (!keeps && !is_new) continue;
    for (const Value* input : node.inputs()) waiting.emplace_back(input, in_order || is_new);
  }
  return true;
}

/// Where in the memory of a tensor each element of a strided view lies.
Value* strided_places(const AtenNode& n, OnnxBuilder& onnx) {
  if (!lies_row_by_row(n.node().input(0))) n.cannot("{} of a view, whose strides are not known", n.node().op.view());
  const IntArgs sizes = n.int_args("size"), strides = n.int_args("stride");
  require(sizes.size() == strides.size(), "there are {} sizes and {} strides", sizes.size(), strides.size());
  const auto rank = static_cast<int64_t>(sizes.size());
  Value* places = onnx.scalar(n.find_int_arg("storage_offset").value_or(0));
  for (int64_t i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    Value* steps = onnx("Mul", {range_on(onnx, sizes[at], i, rank), onnx.scalar(strides[at])});
    places = onnx("Add", {places, steps});
  }
  return places;
}

Values raise_as_strided(const AtenNode& n, OnnxBuilder& onnx) {
  Value* places = strided_places(n, onnx);
  return onnx.gather(flat(onnx, n.input("self")), places, 0);
}

Values raise_as_strided_scatter(const AtenNode& n, OnnxBuilder& onnx) {
  Value* places = strided_places(n, onnx);
  Value* src = n.input_as("src", n.dtype("self"));
  Value* y = onnx("ScatterND", {flat(onnx, n.input("self")), onnx.unsqueeze(places, {onnx.rank(places)}), src});
  return onnx.reshape(y, n.output_shape());
}

constexpr AtenOp kAtenDiagonalAten[] = {
    {.sig = "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
     .types = types_diagonal,
     .view = ViewRule::Diagonal,
     .python = "torch.diagonal",
     .raise = raise_diagonal,
     .raise_complex = raise_each_part},
    {.sig = "aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
     .types = types_linalg_diagonal,
     .view = ViewRule::Opaque,
     .python = "torch.linalg.diagonal",
     .raise = raise_diagonal},
    {.sig = "aten::diag(Tensor self, int diagonal=0) -> Tensor",
     .types = types_diag,
     .python = "torch.diag",
     .raise = raise_diag,
     .raise_complex = raise_each_part},
    {.sig = "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
     .types = types_diag_embed,
     .python = "torch.diag_embed",
     .raise = raise_diag_embed,
     .raise_complex = raise_each_part},
    {.sig = "aten::diagflat(Tensor self, int offset=0) -> Tensor",
     .types = types_diagflat,
     .python = "torch.diagflat",
     .raise = raise_diagflat},
    {.sig = "aten::trace(Tensor self) -> Tensor",
     .types = types_trace,
     .python = "torch.trace",
     .raise = raise_trace,
     .raise_complex = raise_each_part},
    {.sig = "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.diagonal_scatter",
     .raise = raise_diagonal_scatter,
     .raise_complex = raise_each_part},
    {.sig = "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
            "Tensor(a)",
     .types = types_strided,
     .view = ViewRule::AsStrided,
     .python = "torch.as_strided",
     .raise = raise_as_strided},
    {.sig = "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
            "storage_offset=None) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.as_strided_scatter",
     .raise = raise_as_strided_scatter},
};

}  // namespace

extern const OpFamily kAtenDiagonalOps;
constinit const OpFamily kAtenDiagonalOps{"aten_diagonal", {}, kAtenDiagonalAten};

}  // namespace tonnx
