// raise.cpp - PyTorch's running sums, products and extremes, and differences along a dimension, as ONNX.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/expansion.h"
#include "ops/math/rows.h"
#include "ops/move/rows.h"
#include "ops/scan/rows.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The shape without one of its dimensions.
Shape without(Shape shape, int64_t dim) {
  shape.erase_at(dim);
  return shape;
}

bool has_no_elements(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is(0); });
}

/// What one step makes of the states and the element: the new states, the first `given` of which are results as well.
using Step = std::function<std::vector<Value*>(const std::vector<Value*>& states, Value* x)>;

std::vector<Value*> scan_node(OnnxBuilder& onnx, Value* x, int64_t dim, const std::vector<Value*>& starts, size_t given,
                              const Step& step) {
  std::vector<Value*> inputs = starts;
  inputs.push_back(x);
  Node* node = onnx.node("Scan", inputs);
  node->set_attribute("num_scan_inputs", int64_t{1});
  node->set_attribute("scan_input_axes", std::vector<int64_t>{dim});
  node->set_attribute("scan_output_axes", std::vector<int64_t>(given, dim));
  onnx.add_body(*node, "body", [&](Graph& body) {
    std::vector<Value*> states;
    for (const Value* start : starts) states.push_back(add_input(body, "state", start->type));
    const Type element = Type::tensor(OnnxBuilder::dtype(x), without(onnx.shape(x), dim));
    std::vector<Value*> results = step(states, add_input(body, "x", element));
    for (size_t i = 0; i < given; ++i) results.push_back(results[i]);
    return results;
  });
  for (const Value* start : starts) onnx.add_output_to(*node, "last", start->type);
  std::vector<Value*> results;
  for (size_t i = 0; i < given; ++i) {
    Shape shape = without(onnx.shape(x), dim);
    shape.insert_at(dim, onnx.shape(x)[static_cast<size_t>(dim)]);
    results.push_back(onnx.add_output_to(*node, "running", Type::tensor(OnnxBuilder::dtype(starts[i]), shape)));
  }
  return results;
}

/// A Scan along a dimension.
std::vector<Value*> scan(OnnxBuilder& onnx, Value* x, int64_t dim, const std::vector<Value*>& starts, size_t given,
                         const Step& step) {
  const Shape shape = onnx.shape(x);
  std::vector<Value*> results;
  if (has_no_elements(shape)) {
    for (size_t i = 0; i < given; ++i)
      results.push_back(onnx.expand(onnx.number(OnnxBuilder::dtype(starts[i]), 0), shape));
    return results;
  }
  if (std::all_of(shape.begin(), shape.end(), [](const Dim& size) { return size.is_constant(); }))
    return scan_node(onnx, x, dim, starts, given, step);
  // ONNX Runtime takes no step of no steps, and divides by the count of elements where it moves the axis to the front
  const auto rank = static_cast<int64_t>(shape.size());
  const bool may_be_short = !shape.at(static_cast<size_t>(dim)).is_constant();
  const auto moved = [&](Value* value, int64_t from, int64_t to) {
    return from == to ? value : onnx.transpose(value, moved_axis(rank, from, to));
  };
  if (may_be_short) {
    Shape one = shape;
    one.at(static_cast<size_t>(dim)) = 1;
    x = onnx.concat({x, onnx.expand(onnx.number(OnnxBuilder::dtype(x), 0), one)}, dim);
  }
  for (Value* result : scan_node(onnx, moved(x, dim, 0), 0, starts, given, step)) {
    result = moved(result, 0, dim);
    results.push_back(may_be_short ? onnx.slice(result, dim, 0, -1) : result);
  }
  return results;
}

/// The same number in all places of the tensor but for one dimension.
Value* start_of(OnnxBuilder& onnx, Value* x, int64_t dim, Value* number) {
  return onnx.expand(number, without(onnx.shape(x), dim));
}

double lowest(DType dtype) {
  if (is_float(dtype)) return -kInf;
  if (dtype == DType::Bool || is_unsigned(dtype)) return 0;
  return -std::ldexp(1.0, info(dtype).bits - 1);
}

/// Integers above 2^53 are not numbers of float64, so that the largest is said as it is.
Value* worst(OnnxBuilder& onnx, DType dtype, bool is_max) {
  if (is_max) return onnx.number(dtype, lowest(dtype));
  if (is_float(dtype)) return onnx.number(dtype, kInf);
  if (dtype == DType::Int64) return onnx.integer(dtype, std::numeric_limits<int64_t>::max());
  const int bits = info(dtype).bits - (is_unsigned(dtype) ? 0 : 1);
  return onnx.number(dtype, std::ldexp(1.0, bits) - 1);
}

Values raise_cum_extreme(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_max = n.node().op.view() == "cummax";
  const DType dtype = n.dtype("self"), kernel = dtype == DType::Bool ? DType::UInt8 : dtype;
  Value* x = onnx.cast(n.input("self"), kernel);
  const int64_t dim = n.dim("dim", "self");
  if (n.rank("self") == 0) return {n.input("self"), onnx.integer(DType::Int64, 0)};
  const std::vector<Value*> starts{start_of(onnx, x, dim, worst(onnx, kernel, is_max)),
                                   start_of(onnx, x, dim, onnx.integer(DType::Int64, 0)),
                                   onnx.integer(DType::Int64, 0)};
  // the last of equal ones, and NaN before all others
  const auto results = scan(onnx, x, dim, starts, 2, [&](const std::vector<Value*>& states, Value* element) {
    Value* is_next = onnx(is_max ? "GreaterOrEqual" : "LessOrEqual", {element, states[0]});
    if (is_float(kernel)) is_next = onnx("Or", {is_next, onnx("IsNaN", {element})});
    return std::vector<Value*>{onnx.where(is_next, element, states[0]), onnx.where(is_next, states[2], states[1]),
                               onnx("Add", {states[2], onnx.integer(DType::Int64, 1)})};
  });
  return {onnx.cast(results[0], dtype), results[1]};
}

Values raise_logcumsumexp(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("self", dtype);
  const int64_t dim = n.dim("dim", "self");
  if (n.rank("self") == 0) return x;
  const auto results = scan(onnx, x, dim, {start_of(onnx, x, dim, onnx.number(dtype, -kInf))}, 1,
                            [&](const std::vector<Value*>& states, Value* element) {
                              Value* distance = onnx("Neg", {onnx("Abs", {onnx("Sub", {states[0], element})})});
                              Value* sum = onnx("Add", {onnx("Max", {states[0], element}), softplus(distance, onnx)});
                              Value* twice = onnx("Add", {element, onnx.number(dtype, std::log(2.0))});
                              return std::vector<Value*>{onnx.where(onnx("Equal", {states[0], element}), twice, sum)};
                            });
  return results[0];
}

Value* difference(OnnxBuilder& onnx, Value* x, int64_t dim) {
  Value *right = onnx.slice(x, dim, 1, kEnd), *left = onnx.slice(x, dim, 0, -1);
  return onnx(OnnxBuilder::dtype(x) == DType::Bool ? "Xor" : "Sub", {right, left});
}

Values raise_diff(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const int64_t dim = n.dim("dim", "self"), times = n.i("n");
  if (times == 0) {
    n.ignore({"prepend", "append"});
    return n.input("self");
  }
  std::vector<Value*> parts;
  for (const char* name : {"prepend", "self", "append"}) {
    if (n.has(name)) parts.push_back(n.input_as(name, dtype));
  }
  Value* x = onnx.concat(parts, dim);
  const auto size = onnx.shape(x)[static_cast<size_t>(dim)].constant();
  if (size && *size <= times) return onnx.slice(x, dim, 0, 0);
  for (int64_t i = 0; i < times; ++i) x = difference(onnx, x, dim);
  return x;
}

struct Trapezoids {
  Value* areas;  // twice each
  int64_t dim;
};

/// (y[i] + y[i + 1]) times the distance of their places.
Trapezoids trapezoids(const AtenNode& n, OnnxBuilder& onnx) {
  const bool has_x = n.node().overload.view() == "x";
  // sums of bytes wrap, as in PyTorch
  const DType dtype = has_x ? n.promoted({"y", "x"}) : n.dtype("y");
  const int64_t dim = n.dim("dim", "y");
  Value* y = n.input_as("y", dtype);
  Value* sums = onnx("Add", {onnx.slice(y, dim, 1, kEnd), onnx.slice(y, dim, 0, -1)});
  if (!has_x) {
    sums = onnx.cast(sums, n.output_dtype());
    return {n.f("dx") == 1 ? sums : onnx("Mul", {sums, n.input_as("dx", n.output_dtype())}), dim};
  }
  Value* x = n.input_as("x", dtype);
  const int64_t rank = n.rank("y"), x_rank = n.rank("x");
  const int64_t x_dim = x_rank == 1 ? 0 : dim - (rank - x_rank);
  Value* widths = difference(onnx, x, x_dim);
  if (x_rank == 1 && dim < rank - 1) {
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < rank - dim; ++axis) axes.push_back(axis);
    widths = onnx.unsqueeze(widths, axes);
  }
  return {onnx.cast(onnx("Mul", {widths, sums}), n.output_dtype()), dim};
}

Values raise_trapezoid(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const int64_t dim = n.dim("dim", "y");
  if (n.shape("y")[static_cast<size_t>(dim)].is(0)) {
    for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
    return onnx.expand(onnx.number(dtype, 0), n.output_shape());
  }
  Value* sum = onnx.reduce("ReduceSum", trapezoids(n, onnx).areas, {dim}, false);
  return onnx("Mul", {sum, onnx.number(dtype, 0.5)});
}

Values raise_cumulative_trapezoid(const AtenNode& n, OnnxBuilder& onnx) {
  const Trapezoids all = trapezoids(n, onnx);
  Value* sum = onnx("CumSum", {all.areas, onnx.integer(DType::Int64, all.dim)});
  return onnx("Mul", {sum, onnx.number(n.output_dtype(), 0.5)});
}

constexpr AtenOp kAtenScanAten[] = {
    {.sig = "aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
     .types = types_values_and_places,
     .python = "torch.cummax",
     .raise = raise_cum_extreme},
    {.sig = "aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
     .types = types_values_and_places,
     .python = "torch.cummin",
     .raise = raise_cum_extreme},
    {.sig = "aten::cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
     .types = types_cumulative_trapezoid,
     .python = "torch.cumulative_trapezoid",
     .raise = raise_cumulative_trapezoid},
    {.sig = "aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
     .types = types_cumulative_trapezoid,
     .python = "torch.cumulative_trapezoid",
     .raise = raise_cumulative_trapezoid},
    {.sig = "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
     .types = types_diff,
     .layout = Layout::Inputs,
     .python = "torch.diff",
     .raise = raise_diff,
     .raise_complex = raise_each_part},
    {.sig = "aten::logcumsumexp(Tensor self, int dim) -> Tensor",
     .types = types_as_self,
     .python = "torch.logcumsumexp",
     .raise = raise_logcumsumexp},
    {.sig = "aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
     .types = types_trapezoid,
     .python = "torch.trapezoid",
     .raise = raise_trapezoid},
    {.sig = "aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
     .types = types_trapezoid,
     .python = "torch.trapezoid",
     .raise = raise_trapezoid},
};

}  // namespace

Values raise_cumsum(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"dtype"});
  Value* x = n.input_as("self", n.output_dtype());
  const int64_t dim = n.dim("dim", "self");
  if (n.rank("self") == 0) return x;
  // before opset 14 there was none for float16
  const bool is_half = n.output_dtype() == DType::Float16 && onnx.target_opset() < 14;
  if (is_half) x = onnx.cast(x, DType::Float32);
  return onnx.cast(onnx("CumSum", {x, onnx.integer(DType::Int64, dim)}), n.output_dtype());
}

/// CumProd is as young as opset 26, and its older form is a loop.
Values raise_cumprod(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"dtype"});
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("self", dtype);
  const int64_t dim = n.dim("dim", "self");
  if (n.rank("self") == 0) return x;
  if (onnx.target_opset() >= 26) return onnx("CumProd", {x, onnx.integer(DType::Int64, dim)});
  return scan(onnx, x, dim, {start_of(onnx, x, dim, onnx.number(dtype, 1))}, 1,
              [&](const std::vector<Value*>& states, Value* element) {
                return std::vector<Value*>{onnx("Mul", {states[0], element})};
              })[0];
}

extern const OpFamily kAtenScanOps;
constinit const OpFamily kAtenScanOps{"aten_scan", {}, kAtenScanAten};

}  // namespace tonnx
