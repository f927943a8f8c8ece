// raise.cpp - PyTorch's reductions as ONNX.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/reduce/rows.h"

namespace tonnx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// What is reduced: the dimensions from the front, none for all, and whether they stay as 1.
struct Reduced {
  std::vector<int64_t> axes;
  bool keepdim = false;
  Value* list = nullptr;  // the dimensions, where only the run tells them
};

bool has_argument(const AtenNode& n, std::string_view name) { return n.node().find_attribute(name) != nullptr; }

Reduced reduced(const AtenNode& n, std::string_view of = "self") {
  Reduced result;
  if (has_argument(n, "dim")) result.axes = n.dims("dim", of);
  if (has_argument(n, "keepdim")) result.keepdim = n.flag("keepdim");
  std::sort(result.axes.begin(), result.axes.end());
  return result;
}

/// The same, where the run may tell the dimensions: PyTorch exports no such program, but runs one.
Reduced reduced_at_run(const AtenNode& n, OnnxBuilder& onnx) {
  const Attribute* given = n.node().find_attribute("dim");
  IntArgs dims;
  if (given != nullptr && given->value.get<Operand>()) dims = {n.int_arg("dim")};
  if (given != nullptr && given->value.get<AttrList>()) dims = n.int_args("dim");
  if (std::none_of(dims.begin(), dims.end(), [](const IntArg& dim) { return dim.value != nullptr; })) return reduced(n);
  return {.axes = {}, .keepdim = has_argument(n, "keepdim") && n.flag("keepdim"), .list = onnx.list(dims)};
}

/// A tensor without dimensions is its own sum, maximum ...
Value* reduce(OnnxBuilder& onnx, std::string_view op, Value* x, const Reduced& over) {
  if (onnx.rank(x) == 0) {
    if (op == "ReduceSumSquare") return onnx("Mul", {x, x});
    return op == "ReduceL1" || op == "ReduceL2" ? onnx("Abs", {x}) : x;
  }
  if (over.list) return onnx(op, {x, over.list}, {{"keepdims", int64_t{over.keepdim}}});
  return onnx.reduce(op, x, over.axes, over.keepdim);
}

/// How many elements go into each result.
IntArg count_of(OnnxBuilder& onnx, Value* x, const std::vector<int64_t>& axes) {
  IntArg count = 1;
  for (int64_t axis = 0; axis < onnx.rank(x); ++axis) {
    if (axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end())
      count = onnx.mul(count, onnx.size(x, axis));
  }
  return count;
}

Value* count_as(OnnxBuilder& onnx, const IntArg& count, DType dtype) {
  return count.value ? onnx.cast(onnx.scalar(count), dtype) : onnx.number(dtype, static_cast<double>(count.number));
}

Value* not_zero(Value* x, OnnxBuilder& onnx) {
  return onnx("Not", {onnx("Equal", {x, onnx.number(OnnxBuilder::dtype(x), 0)})});
}

/// The p-norm of the elements.
Value* norm(OnnxBuilder& onnx, Value* x, double p, const Reduced& over) {
  const DType dtype = OnnxBuilder::dtype(x);
  if (p == 2) return reduce(onnx, "ReduceL2", x, over);
  if (p == 1) return reduce(onnx, "ReduceL1", x, over);
  if (p == 0) return reduce(onnx, "ReduceSum", onnx.cast(not_zero(x, onnx), dtype), over);
  Value* size = onnx("Abs", {x});
  if (std::isinf(p)) return reduce(onnx, p > 0 ? "ReduceMax" : "ReduceMin", size, over);
  Value* sum = reduce(onnx, "ReduceSum", onnx("Pow", {size, onnx.number(dtype, p)}), over);
  return onnx("Pow", {sum, onnx.number(dtype, 1 / p)});
}

/// Complex numbers count by their length.
Value* real_input(const AtenNode& n, OnnxBuilder& onnx, std::string_view name, DType dtype) {
  Value* x = n.input(name);
  if (info(n.dtype(name)).kind == 'c') x = onnx.reduce("ReduceL2", x, {n.rank(name)}, false);
  return onnx.cast(x, dtype);
}

Values raise_norm(const AtenNode& n, OnnxBuilder& onnx) {
  if (has_argument(n, "dtype")) n.ignore({"dtype"});
  const double p = n.find_f("p").value_or(2);
  return norm(onnx, real_input(n, onnx, "self", n.output_dtype()), p, reduced(n));
}

Values raise_frobenius_norm(const AtenNode& n, OnnxBuilder& onnx) {
  return norm(onnx, real_input(n, onnx, "self", n.output_dtype()), 2, reduced(n));
}

Values raise_dist(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* difference = onnx("Sub", {n.input_as("self", dtype), n.input_as("other", dtype)});
  return norm(onnx, difference, n.f("p"), {});
}

/// Rows whose norm is above the bound are scaled down to it; PyTorch adds 1e-7 to the norm.
Values raise_renorm(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.dtype("self");
  Value* x = n.input("self");
  Reduced over{.axes = {}, .keepdim = true};
  const int64_t dim = n.dim("dim", "self");
  for (int64_t axis = 0; axis < n.rank("self"); ++axis) {
    if (axis != dim) over.axes.push_back(axis);
  }
  Value* length = over.axes.empty() ? onnx("Abs", {x}) : norm(onnx, x, n.f("p"), over);
  Value* most = onnx.number(dtype, n.f("maxnorm"));
  Value* factor = onnx("Div", {most, onnx("Add", {length, onnx.number(dtype, 1e-7)})});
  factor = onnx.where(onnx("Greater", {length, most}), factor, onnx.number(dtype, 1));
  return onnx("Mul", {x, factor});
}

Values raise_count_nonzero(const AtenNode& n, OnnxBuilder& onnx) {
  Value* is_counted = n.dtype("self") == DType::Bool ? n.input("self") : not_zero(n.input("self"), onnx);
  return reduce(onnx, "ReduceSum", onnx.cast(is_counted, DType::Int64), reduced(n));
}

Values raise_nansum(const AtenNode& n, OnnxBuilder& onnx) {
  if (has_argument(n, "dtype")) n.ignore({"dtype"});
  Value* x = n.input("self");
  if (is_float(n.dtype("self"))) x = onnx.where(onnx("IsNaN", {x}), onnx.number(n.dtype("self"), 0), x);
  return reduce(onnx, "ReduceSum", onnx.cast(x, n.output_dtype()), reduced(n));
}

Values raise_nanmean(const AtenNode& n, OnnxBuilder& onnx) {
  if (has_argument(n, "dtype")) n.ignore({"dtype"});
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("self", dtype);
  Value* is_nan = onnx("IsNaN", {x});
  Value* sum = reduce(onnx, "ReduceSum", onnx.where(is_nan, onnx.number(dtype, 0), x), reduced(n));
  Value* count = reduce(onnx, "ReduceSum", onnx.cast(onnx("Not", {is_nan}), dtype), reduced(n));
  return onnx("Div", {sum, count});
}

/// Sums over what broadcasting to the shape of self would have made.
Values raise_sum_to_size(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"size"});
  const Shape &from = n.shape("self"), &to = n.output_shape();
  const size_t added = from.size() - to.size();
  std::vector<int64_t> axes, leading;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < added) leading.push_back(static_cast<int64_t>(i));
    if (i < added || (to[i - added].is(1) && !from[i].is(1))) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return n.input_as("self", n.output_dtype());
  return onnx.squeeze(onnx.reduce("ReduceSum", n.input_as("self", n.output_dtype()), axes, true), leading);
}

struct Spread {
  Value* variance;
  Value* mean;
};

/// The sum of the squares of what differs from the mean, by the count less the correction.
Spread spread_of(const AtenNode& n, OnnxBuilder& onnx, const Reduced& over, double correction) {
  const DType dtype = n.output_dtype(0);
  Value* x = real_input(n, onnx, "self", dtype);
  Value* kept = onnx.rank(x) == 0 ? x : onnx.reduce("ReduceMean", x, over.axes, true);
  Value* difference = onnx("Sub", {x, kept});
  const IntArg count = count_of(onnx, x, over.axes);
  Spread result{nullptr, nullptr};
  if (correction == 0 && (count.value || count.number > 0)) {
    result.variance = reduce(onnx, "ReduceMean", onnx("Mul", {difference, difference}), over);
  } else {
    Value* divisor;
    if (count.value) {
      divisor = onnx("Sub", {count_as(onnx, count, dtype), onnx.number(dtype, correction)});
      divisor = onnx("Max", {divisor, onnx.number(dtype, 0)});
    } else {
      divisor = onnx.number(dtype, std::max(static_cast<double>(count.number) - correction, 0.0));
    }
    result.variance = onnx("Div", {reduce(onnx, "ReduceSumSquare", difference, over), divisor});
  }
  const bool wants_mean = n.output_count() > 1;
  if (wants_mean) {
    const bool same = over.keepdim || onnx.rank(x) == 0;
    result.mean = same ? kept : onnx.reshape(kept, n.output_shape(1));
    if (count.is(0)) result.mean = onnx.expand(onnx.number(dtype, std::nan("")), n.output_shape(1));
  }
  return result;
}

/// any and all. ONNX Runtime refuses to reduce no flags at all, but not bytes.
Values raise_flags(const AtenNode& n, OnnxBuilder& onnx, const char* op) {
  const Reduced over = reduced(n);
  Value* x = n.input_as("self", DType::Bool);
  const IntArg count = count_of(onnx, x, over.axes);
  if (count.value || count.is(0)) x = onnx.cast(x, DType::UInt8);
  return onnx.cast(reduce(onnx, op, x, over), n.output_dtype());
}

constexpr AtenOp kAtenReduceAten[] = {
    {.sig = "aten::all(Tensor self) -> Tensor",
     .types = types_truth,
     .python = ".all",
     .raise = raise_all,
     .raise_complex = raise_with_flags},
    {.sig = "aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     .types = types_truth,
     .python = ".all",
     .raise = raise_all,
     .raise_complex = raise_with_flags},
    {.sig = "aten::any(Tensor self) -> Tensor",
     .types = types_truth,
     .python = ".any",
     .raise = raise_any,
     .raise_complex = raise_with_flags},
    {.sig = "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     .types = types_truth,
     .python = ".any",
     .raise = raise_any,
     .raise_complex = raise_with_flags},
    {.sig = "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor",
     .types = types_place,
     .python = "torch.count_nonzero",
     .raise = raise_count_nonzero,
     .raise_complex = raise_with_flags},
    {.sig = "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
     .types = types_place,
     .python = "torch.count_nonzero",
     .raise = raise_count_nonzero,
     .raise_complex = raise_with_flags},
    {.sig = "aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
     .types = types_distance,
     .python = "torch.dist",
     .raise = raise_dist},
    {.sig = "aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
     .types = types_mean,
     .python = "torch.ops.aten.frobenius_norm.dim",
     .raise = raise_frobenius_norm},
    {.sig = "aten::max(Tensor self) -> Tensor",
     .types = types_extreme,
     .python = "torch.max",
     .raise = raise_reduce<"ReduceMax">},
    {.sig = "aten::min(Tensor self) -> Tensor",
     .types = types_extreme,
     .python = "torch.min",
     .raise = raise_reduce<"ReduceMin">},
    {.sig = "aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .types = types_mean,
     .python = "torch.nanmean",
     .raise = raise_nanmean},
    {.sig = "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .types = types_sum,
     .out_dtype = true,
     .python = "torch.nansum",
     .raise = raise_nansum},
    {.sig = "aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
     .types = types_mean,
     .python = "torch.norm",
     .raise = raise_norm},
    {.sig = "aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
     .types = types_mean,
     .python = "torch.norm",
     .raise = raise_norm},
    {.sig = "aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> "
            "Tensor",
     .types = types_mean,
     .python = "torch.norm",
     .raise = raise_norm},
    {.sig = "aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
     .types = types_mean,
     .python = "torch.norm",
     .raise = raise_norm},
    {.sig = "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
     .types = types_as_self,
     .python = "torch.renorm",
     .raise = raise_renorm},
    {.sig = "aten::std(Tensor self, bool unbiased=True) -> Tensor",
     .types = types_mean,
     .python = "torch.std",
     .raise = raise_var,
     .raise_complex = raise_length_of_parts},
    {.sig = "aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
     .types = types_mean,
     .python = "torch.std",
     .raise = raise_var,
     .raise_complex = raise_length_of_parts},
    {.sig = "aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
     .types = types_with_mean,
     .python = "torch.std_mean",
     .raise = raise_var,
     .raise_complex = raise_no_complex},
    {.sig = "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
            "-> (Tensor, Tensor)",
     .types = types_with_mean,
     .python = "torch.std_mean",
     .raise = raise_var,
     .raise_complex = raise_no_complex},
    {.sig = "aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
     .types = types_with_mean,
     .python = "torch.std_mean",
     .raise = raise_var,
     .raise_complex = raise_no_complex},
    {.sig = "aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor",
     .types = types_summed_to,
     .python = ".sum_to_size",
     .raise = raise_sum_to_size},
    {.sig = "aten::var(Tensor self, bool unbiased=True) -> Tensor",
     .types = types_mean,
     .python = "torch.var",
     .raise = raise_var,
     .raise_complex = raise_sum_of_parts},
    {.sig = "aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
     .types = types_mean,
     .python = "torch.var",
     .raise = raise_var,
     .raise_complex = raise_sum_of_parts},
    {.sig = "aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
     .types = types_with_mean,
     .python = "torch.var_mean",
     .raise = raise_var,
     .raise_complex = raise_no_complex},
    {.sig = "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
            "-> (Tensor, Tensor)",
     .types = types_with_mean,
     .python = "torch.var_mean",
     .raise = raise_var,
     .raise_complex = raise_no_complex},
    {.sig = "aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
     .types = types_with_mean,
     .python = "torch.var_mean",
     .raise = raise_var,
     .raise_complex = raise_no_complex},
};

}  // namespace

/// In the type of the result: sums of integers are int64.
Values raise_reduction(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  if (has_argument(n, "dtype")) n.ignore({"dtype"});
  if (info(n.output_dtype()).kind == 'c') n.cannot("reductions of complex numbers");
  return reduce(onnx, op, n.input_as("self", n.output_dtype()), reduced_at_run(n, onnx));
}

Values raise_mean(const AtenNode& n, OnnxBuilder& onnx) {
  const Reduced over = reduced_at_run(n, onnx);
  // ONNX Runtime gives 0 for the mean of nothing
  if (!over.list && count_of(onnx, n.input("self"), over.axes).is(0)) {
    n.ignore({"dtype"});
    return onnx.expand(onnx.number(n.output_dtype(), std::nan("")), n.output_shape());
  }
  return raise_reduction(n, onnx, "ReduceMean");
}

Values raise_any(const AtenNode& n, OnnxBuilder& onnx) { return raise_flags(n, onnx, "ReduceMax"); }
Values raise_all(const AtenNode& n, OnnxBuilder& onnx) { return raise_flags(n, onnx, "ReduceMin"); }

Values raise_logsumexp(const AtenNode& n, OnnxBuilder& onnx) {
  if (info(n.output_dtype()).kind == 'c') n.cannot("reductions of complex numbers");
  Value* x = n.input_as("self", n.output_dtype());
  return reduce(onnx, "ReduceLogSumExp", x, reduced_at_run(n, onnx));
}

Values raise_vector_norm(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"dtype"});
  return norm(onnx, real_input(n, onnx, "self", n.output_dtype()), n.f("ord"), reduced_at_run(n, onnx));
}

Values raise_reduced(const AtenNode& n, OnnxBuilder& onnx) {
  constexpr std::string_view kKnown[] = {"ReduceSum", "ReduceMean", "ReduceMax",
                                         "ReduceMin", "ReduceL2",   "ReduceLogSumExp"};
  const std::string how = n.s("how");
  require(std::find(std::begin(kKnown), std::end(kKnown), how) != std::end(kKnown), "'{}' is not a reduction", how);
  return onnx(how, {n.input("self"), n.input("axes")}, {{"keepdims", int64_t{n.flag("keepdim")}}});
}

Values raise_arg_extreme(const AtenNode& n, OnnxBuilder& onnx) {
  const char* op = n.node().op.view() == "argmax" ? "ArgMax" : "ArgMin";
  Value* x = n.input("self");
  const auto dim = n.find_i("dim");
  const bool keepdim = n.flag("keepdim");
  if (n.rank("self") == 0) return onnx.integer(DType::Int64, 0);
  if (dim) {
    return onnx(op, {x}, {{"axis", AtenNode::normalized(*dim, n.rank("self"))}, {"keepdims", int64_t{keepdim}}});
  }
  Value* flat = n.rank("self") == 1 ? x : onnx.reshape(x, IntArgs{-1});
  Value* index = onnx(op, {flat}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}});
  return onnx.reshape(index, n.output_shape());
}

/// max and min: of all, or along a dimension with their places.
Values raise_extreme_dim(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_max = n.node().op.view() == "max";
  Value* x = n.input("self");
  const int64_t dim = n.dim("dim", "self");
  const bool keepdim = n.flag("keepdim");
  if (n.rank("self") == 0) return {x, onnx.integer(DType::Int64, 0)};
  Value* index = nullptr;
  if (n.wants_output(1))
    index = onnx(is_max ? "ArgMax" : "ArgMin", {x}, {{"axis", dim}, {"keepdims", int64_t{keepdim}}});
  return {onnx.reduce(is_max ? "ReduceMax" : "ReduceMin", x, {dim}, keepdim), index};
}

Values raise_aminmax(const AtenNode& n, OnnxBuilder& onnx) {
  Reduced over{.axes = {}, .keepdim = n.flag("keepdim")};
  if (const auto dim = n.find_i("dim")) over.axes = {AtenNode::normalized(*dim, n.rank("self"))};
  Value* x = n.input("self");
  return {reduce(onnx, "ReduceMin", x, over), reduce(onnx, "ReduceMax", x, over)};
}

/// var, std, var_mean and std_mean in all their overloads.
Values raise_var(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string_view name = n.node().op.view();
  double correction = 1;
  if (n.node().overload.view() == "correction") {
    correction = n.find_f("correction").value_or(1);
  } else {
    correction = n.flag("unbiased") ? 1 : 0;
  }
  Spread spread = spread_of(n, onnx, reduced(n), correction);
  if (name.starts_with("std")) spread.variance = onnx("Sqrt", {spread.variance});
  if (n.output_count() == 1) return spread.variance;
  return {spread.variance, spread.mean};
}

extern const OpFamily kAtenReduceOps;
constinit const OpFamily kAtenReduceOps{"aten_reduce", {}, kAtenReduceAten};

}  // namespace tonnx
