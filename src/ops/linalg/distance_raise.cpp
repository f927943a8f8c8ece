// distance_raise.cpp - PyTorch's distances between vectors as ONNX.
#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/frame/aten_types.h"
#include "ops/linalg/rows.h"

namespace tonnx {
namespace {

/// The norm of the differences along the last dimension.
Value* last_norm(Value* d, double p, bool keepdim, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(d);
  const std::vector<int64_t> last{onnx.rank(d) - 1};
  if (p == 2) return onnx.reduce("ReduceL2", d, last, keepdim);
  if (p == 1) return onnx.reduce("ReduceL1", d, last, keepdim);
  if (p == 0) {
    Value* differs = onnx("Not", {onnx("Equal", {d, onnx.number(dtype, 0)})});
    return onnx.reduce("ReduceSum", onnx.cast(differs, dtype), last, keepdim);
  }
  Value* size = onnx("Abs", {d});
  if (std::isinf(p)) return onnx.reduce(p > 0 ? "ReduceMax" : "ReduceMin", size, last, keepdim);
  Value* sum = onnx.reduce("ReduceSum", onnx("Pow", {size, onnx.number(dtype, p)}), last, keepdim);
  return onnx("Pow", {sum, onnx.number(dtype, 1 / p)});
}

bool is_zero(const Shape& shape) {
  for (const Dim& dim : shape) {
    if (dim.is(0)) return true;
  }
  return false;
}

Values raise_pdist(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  const auto rows = n.shape("self")[0].constant();
  const double p = n.f("p");
  if (!rows) n.cannot("a number of rows that is not fixed");
  if (is_zero(n.output_shape())) return onnx.numbers(n.output_dtype(), {0}, {});
  if (is_zero(n.shape("self"))) return onnx.expand(onnx.number(n.output_dtype(), 0), n.output_shape());
  std::vector<int64_t> first, second;
  first.reserve(room_for<int64_t>({*rows, *rows}) / 2);  // half of all pairs, and two numbers for each
  for (int64_t i = 0; i < *rows; ++i) {
    for (int64_t j = i + 1; j < *rows; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  }
  Value* d = onnx("Sub", {onnx.gather(x, onnx.ints(first), 0), onnx.gather(x, onnx.ints(second), 0)});
  return last_norm(d, p, false, onnx);
}

Values raise_pairwise_distance(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.promoted({"x1", "x2"});
  Value* difference = onnx("Sub", {n.input_as("x1", dtype), n.input_as("x2", dtype)});
  return length_of(onnx.cast(difference, n.output_dtype()), n.f("p"), n.f("eps"), n.flag("keepdim"), onnx);
}

/// The product of the two by their lengths, none of which is taken as less than eps.
Values raise_cosine_similarity(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *a = n.input_as("x1", dtype), *b = n.input_as("x2", dtype);
  const int64_t rank = std::max(n.rank("x1"), n.rank("x2"));
  const int64_t dim = AtenNode::normalized(n.i("dim"), rank);
  const auto direction = [&](Value* x) {
    const int64_t axis = dim - (rank - onnx.rank(x));
    Value* length = axis < 0 || onnx.rank(x) == 0 ? onnx("Abs", {x}) : onnx.reduce("ReduceL2", x, {axis}, true);
    return onnx("Div", {x, onnx("Max", {length, onnx.number(dtype, n.f("eps"))})});
  };
  const auto size_of = [&](const char* name) -> Dim {
    const int64_t axis = dim - (rank - n.rank(name));
    return axis < 0 || n.rank(name) == 0 ? Dim(1) : n.shape(name)[static_cast<size_t>(axis)];
  };
  // lengths are those of the tensors as broadcast; which of them is, may be known to the run alone
  if (rank > 0 && !(size_of("x1") == size_of("x2"))) {
    Value *first = onnx("Shape", {a}), *second = onnx("Shape", {b});
    a = onnx("Expand", {a, second});
    b = onnx("Expand", {b, first});
  }
  Value* product = onnx("Mul", {direction(a), direction(b)});
  return rank == 0 ? product : onnx.reduce("ReduceSum", product, {dim}, false);
}

constexpr AtenOp kAtenDistanceAten[] = {
    {.sig = "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
     .types = types_cdist,
     .python = "torch.ops.aten._cdist_forward",
     .raise = raise_cdist},
    {.sig = "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
     .types = types_pdist,
     .python = "torch.ops.aten._pdist_forward",
     .raise = raise_pdist},
    {.sig = "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
     .types = types_cosine_similarity,
     .python = "F.cosine_similarity",
     .raise = raise_cosine_similarity},
    {.sig = "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool "
            "keepdim=False) -> Tensor",
     .types = types_pairwise_distance,
     .python = "F.pairwise_distance",
     .raise = raise_pairwise_distance},
    {.sig = "aten::pdist(Tensor self, float p=2.) -> Tensor",
     .types = types_pdist,
     .python = "F.pdist",
     .raise = raise_pdist},
};

}  // namespace

Value* length_of(Value* d, double p, double eps, bool keepdim, OnnxBuilder& onnx) {
  if (eps != 0) d = onnx("Add", {d, onnx.number(OnnxBuilder::dtype(d), eps)});
  if (onnx.rank(d) == 0) return onnx("Abs", {d});
  return last_norm(d, p, keepdim, onnx);
}

Values raise_cdist(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"compute_mode"});
  const DType dtype = n.output_dtype();
  const int64_t rank = n.rank("x1"), other = n.rank("x2");
  if (is_zero(n.output_shape())) {
    n.ignore({"p"});
    return onnx.expand(onnx.number(dtype, 0), n.output_shape());
  }
  Value* a = onnx.unsqueeze(n.input_as("x1", dtype), {rank - 1});
  Value* b = onnx.unsqueeze(n.input_as("x2", dtype), {other - 2});
  if (n.shape("x1").back().is(0)) {
    n.ignore({"p"});
    return onnx.expand(onnx.number(dtype, 0), n.output_shape());
  }
  return last_norm(onnx("Sub", {a, b}), n.f("p"), false, onnx);
}

extern const OpFamily kAtenDistanceOps;
constinit const OpFamily kAtenDistanceOps{"aten_distance", {}, kAtenDistanceAten};

}  // namespace tonnx
