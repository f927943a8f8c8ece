// grouped_raise.cpp - matrix products of groups of rows, as mixtures of experts compute them: one MatMul for each
// group.
//
// How many rows a group has depends on data; how many groups there are does not. One MatMul for each is faster in ONNX
// Runtime than a Loop over them, which copies the weights, and than products with gathered weights.
#include "ops/frame/node_facts.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// The groups of a matrix along one of its axes, which end at `offs`, and last what is in none of them.
Values groups_of(OnnxBuilder& onnx, Value* x, int64_t axis, Value* offs, size_t count) {
  offs = onnx.cast(offs, DType::Int64);
  Value* starts = onnx.concat({onnx.ints({0}), offs}, 0);
  Value* ends = onnx.concat({offs, onnx.list(onnx.size(x, axis))}, 0);
  if (onnx.target_opset() >= 13)
    return onnx.all(count + 1, "Split", {x, onnx("Sub", {ends, starts})}, {attr("axis", axis)});
  Values groups{};  // older ones split only by constants
  for (int64_t i = 0; i <= static_cast<int64_t>(count); ++i)
    groups.push_back(onnx.slice(x, axis, onnx.slice(starts, 0, i, i + 1), onnx.slice(ends, 0, i, i + 1)));
  return groups;
}

/// The matrices of a stack. Where the model needs these weights elsewhere too, it does not hold them twice: ONNX
/// Runtime takes the stack apart when it loads the model.
std::vector<Value*> matrices_of(OnnxBuilder& onnx, Value* x, size_t count) {
  static const Symbol kTranspose("Transpose");
  const Node* turned = producer_of(x, kTranspose);
  if (turned != nullptr && ints_of(*turned, "perm") != std::vector<int64_t>{0, 2, 1}) turned = nullptr;
  Value* stack = turned ? turned->input(0) : x;
  const bool is_shared = stack->constant && stack->producer == nullptr && stack->uses.size() > (turned ? 1 : 0);
  std::vector<Value*> parts;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    if (!is_shared) {
      parts.push_back(onnx.squeeze(onnx.slice(x, 0, i, i + 1), {0}));
      continue;
    }
    Value* part = onnx.gather(stack, onnx.integer(DType::Int64, i), 0);
    part->constant.reset();
    parts.push_back(turned ? onnx.swap_axes(part, 0, 1) : part);
  }
  return parts;
}

/// Zeros in place of what is in no group.
Value* nothing(OnnxBuilder& onnx, DType dtype, const IntArg& rows, const IntArg& columns) {
  return onnx("Expand", {onnx.number(dtype, 0), onnx.list(IntArgs{rows, columns})});
}

/// `a` or `b` is a stack of matrices; where it is not, its rows or columns are grouped. Two matrices are grouped along
/// the dimension that the product sums over.
Value* grouped_product(const AtenNode& n, OnnxBuilder& onnx, Value* a, Value* b, Value* offs) {
  const bool stacked_a = onnx.rank(a) == 3, stacked_b = onnx.rank(b) == 3;
  if (stacked_a && stacked_b) return onnx("MatMul", {a, b});
  if (offs == nullptr) n.cannot("matrices in groups whose ends are not given");
  const auto known = onnx.shape(offs).at(0).constant();
  if (!known) n.cannot("a number of groups that only the run tells");
  const auto count = static_cast<size_t>(*known);
  const Values rows = stacked_a ? Values{} : groups_of(onnx, a, stacked_b ? 0 : 1, offs, count);
  const Values columns = stacked_b ? Values{} : groups_of(onnx, b, stacked_a ? 1 : 0, offs, count);
  const std::vector<Value*> lefts = stacked_a ? matrices_of(onnx, a, count) : std::vector<Value*>{};
  const std::vector<Value*> rights = stacked_b ? matrices_of(onnx, b, count) : std::vector<Value*>{};
  std::vector<Value*> products;
  for (size_t i = 0; i < count; ++i) {
    Value* product = onnx("MatMul", {stacked_a ? lefts[i] : rows[i], stacked_b ? rights[i] : columns[i]});
    products.push_back(stacked_a || stacked_b ? product : onnx.unsqueeze(product, {0}));
  }
  const DType dtype = OnnxBuilder::dtype(a);
  if (stacked_a) products.push_back(nothing(onnx, dtype, onnx.size(a, 1), onnx.size(columns[count], 1)));
  if (stacked_b) products.push_back(nothing(onnx, dtype, onnx.size(rows[count], 0), onnx.size(b, 2)));
  return onnx.concat(products, stacked_a ? 1 : 0);
}

Values raise_grouped_mm(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.has("bias")) n.cannot("a bias, which PyTorch does not take yet");
  n.ignore({"out_dtype"});  // that of the matrices, or PyTorch refuses it
  return {grouped_product(n, onnx, n.input("self"), n.input("mat2"), n.find_input("offs"))};
}

Values raise_grouped_mm_fallback(const AtenNode& n, OnnxBuilder& onnx) {
  return {grouped_product(n, onnx, n.input("input"), n.input("weight"), n.input("offs"))};
}

constexpr AtenOp kAtenGroupedAten[] = {
    {.sig = "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
            "out_dtype=None) -> Tensor",
     .python = "torch._grouped_mm",
     .raise = raise_grouped_mm},
    {.sig = "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
     .python = "torch.ops.transformers.grouped_mm_fallback",
     .raise = raise_grouped_mm_fallback},
};

}  // namespace

extern const OpFamily kAtenGroupedOps;
constinit const OpFamily kAtenGroupedOps{"aten_grouped", {}, kAtenGroupedAten};

}  // namespace tonnx
