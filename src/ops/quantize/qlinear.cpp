// qlinear.cpp - products of quantised integers, exact as in 32 bits: MatMulInteger, ConvInteger, QLinearMatMul,
// QLinearConv.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/conv/conv.h"
#include "ops/conv/rows.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/size_node.h"
#include "ops/matmul/eval.h"
#include "ops/matmul/matmul.h"
#include "ops/quantize/quantize.h"
#include "ops/quantize/weights_eval.h"

namespace tonnx {
namespace {

constexpr double kExactInFloat32 = 1 << 24;
constexpr double kSpan = 255;  // of 8 bits: a number less its zero point is within it, whatever the zero point
constexpr ConvNames kConvNames{"x", "w"};

using LayoutFn = SumLayout (*)(const std::vector<int64_t>&);

/// The zero points of constant weights of 8 bits: one, or one for each channel; nothing where it is otherwise.
std::optional<std::vector<int64_t>> known_zero_points(const NodeView& n, std::string_view weight,
                                                      std::string_view zero_point, LayoutFn layout_of) {
  const TensorPtr constant = n.find_constant(weight);
  if (!constant || constant->dims.empty() || info(constant->dtype).bits != 8) return std::nullopt;
  if (!n.has(zero_point)) return std::vector<int64_t>{0};
  const auto found = n.find_const_ints(zero_point);
  const SumLayout layout = layout_of(constant->dims);
  const int64_t channels = layout.inner == 1 ? layout.outer : layout.inner;
  const bool fits =
      found && n.find_rank(zero_point) <= 1 && (found->size() == 1 || static_cast<int64_t>(found->size()) == channels);
  return fits ? found : std::nullopt;
}

/// Bounds every partial sum of products of the input and the weights; nothing where it can be any size.
std::optional<double> bound_of_sums(const NodeView& n, std::string_view weight, std::string_view zero_point,
                                    LayoutFn layout_of) {
  const Shape* shape = n.find_shape(weight);
  if (shape == nullptr || shape->empty()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dim& dim : *shape) {
    if (!dim.is_constant()) return std::nullopt;
    dims.push_back(*dim.constant());
  }
  const SumLayout layout = layout_of(dims);
  if (const auto zero_points = known_zero_points(n, weight, zero_point, layout_of)) {
    return kSpan * largest_sum(*n.find_constant(weight), *zero_points, layout);
  }
  return kSpan * kSpan * static_cast<double>(layout.terms);
}

DType exact_type(const std::optional<double>& bound) {
  return bound && *bound < kExactInFloat32 ? DType::Float32 : DType::Float64;
}

/// The quantised numbers of an input, less their zero point, as floats.
Value* centered(AtenBuilder& aten, Value* x, const QuantParam& zero_point, DType computed) {
  return minus(aten, aten("to.dtype", x, computed), zero_point);
}

/// Constant weights less their zero points, where that fits into 8 bits: what else is subtracted in each run.
TensorPtr find_centered(const NodeView& n, std::string_view weight, std::string_view zero_point, LayoutFn layout_of) {
  const auto zero_points = known_zero_points(n, weight, zero_point, layout_of);
  if (!zero_points) return nullptr;
  if (std::all_of(zero_points->begin(), zero_points->end(), [](int64_t zero) { return zero == 0; })) return nullptr;
  return centered_in_bytes(*n.find_constant(weight), *zero_points, layout_of(n.find_constant(weight)->dims));
}

/// One number for each row of a matrix stands in a column.
QuantParam row_param(const OnnxNode& n, AtenBuilder& aten, std::string_view name) {
  QuantParam param = quant_param(n, aten, name);
  if (param.tensor == nullptr || n.rank(name) != 1 || n.find_shape(name)->at(0).is(1)) return param;
  param.tensor = along_axis(aten, param.tensor, 0, 2);
  return param;
}

/// The right side of a product.
Value* matrix(const OnnxNode& n, AtenBuilder& aten, std::string_view name, DType computed) {
  if (TensorPtr all = find_centered(n, name, "b_zero_point", SumLayout::of_matrix)) {
    return aten("to.dtype", aten.constant(std::move(all), n.value(name)->name), computed);
  }
  return centered(aten, n.input(name), quant_param(n, aten, "b_zero_point"), computed);
}

/// The weights of a convolution.
Value* kernel(const OnnxNode& n, AtenBuilder& aten, DType computed) {
  if (TensorPtr all = find_centered(n, "w", "w_zero_point", SumLayout::of_conv)) {
    return aten("to.dtype", aten.constant(std::move(all), n.value("w")->name), computed);
  }
  return centered(aten, n.input("w"), quant_param(n, aten, "w_zero_point", QuantAxis{.of = "w", .axis = 0}), computed);
}

void require_bytes(const NodeView& n, std::initializer_list<std::string_view> inputs) {
  for (const std::string_view input : inputs) {
    const DType dtype = n.dtype(input);
    require(dtype == DType::Undefined || info(dtype).bits == 8, "input '{}' has elements of type {}", input,
            name_of(dtype));
  }
}

void infer_mat_mul_integer(InferNode& n) {
  require_bytes(n, {"A", "B"});
  n.set(0, DType::Int32, matmul_shape(n.find_shape("A"), n.find_shape("B")));
}

Values lower_mat_mul_integer(const OnnxNode& n, AtenBuilder& aten) {
  const DType computed = exact_type(bound_of_sums(n, "B", "b_zero_point", SumLayout::of_matrix));
  Value* a = centered(aten, n.input("A"), row_param(n, aten, "a_zero_point"), computed);
  Value* b = matrix(n, aten, "B", computed);
  return aten("to.dtype", aten("matmul", a, b), DType::Int32);
}

/// A row of scales or zero points is for the channels of the weight.
bool expand_conv(const NodeView& n, OnnxEdit& edit) {
  return choose_rank(edit, n, {"w_scale", "w_zero_point"}, {0, 1}) || choose_rank(edit, n, {"w_zero_point"}, {0, 1}) ||
         (!n.find_ints("kernel_shape") && choose_rank(edit, n, {"w", "x"}, from_to(3, 5)));
}

bool expand_conv_integer(const NodeView& n, OnnxEdit& edit) {
  return choose_rank(edit, n, {"w_zero_point"}, {0, 1}) ||
         (!n.find_ints("kernel_shape") && choose_rank(edit, n, {"w", "x"}, from_to(3, 5)));
}

void infer_conv_integer(InferNode& n) {
  require_bytes(n, {"x", "w"});
  learn_conv_ranks(n, kConvNames);
  n.set(0, DType::Int32, conv_shape(n, kConvNames));
}

Values lower_conv_integer(const OnnxNode& n, AtenBuilder& aten) {
  const DType computed = exact_type(bound_of_sums(n, "w", "w_zero_point", SumLayout::of_conv));
  Value* x = centered(aten, n.input("x"), quant_param(n, aten, "x_zero_point"), computed);
  Value* w = kernel(n, aten, computed);
  return aten("to.dtype", convolved(n, aten, x, w, nullptr, kConvNames), DType::Int32);
}

/// a * b / y, as ONNX Runtime multiplies what it then rounds: in 32 bits, and while converting where it can be.
QuantParam joint_scale(AtenBuilder& aten, const QuantParam& a, const QuantParam& b, const QuantParam& y) {
  const auto join = [&](double left, double right) {
    return static_cast<float>(left) * static_cast<float>(right) / static_cast<float>(*y.number);
  };
  if (a.number && b.number && y.number) return {.number = join(*a.number, *b.number)};
  if (a.number && b.tensor->constant && y.number) {
    const Tensor& scales = *b.tensor->constant;
    if (const auto numbers = floats_of(scales, scales.count())) {
      std::vector<double> joined;
      for (const double scale : *numbers) joined.push_back(join(*a.number, scale));
      return {.tensor = aten.constant(make_floats(DType::Float32, scales.dims, joined), b.tensor->name)};
    }
  }
  const auto in_float32 = [&](const QuantParam& p) { return cast(aten, p.tensor, p.dtype, DType::Float32); };
  Value* product = nullptr;
  if (a.tensor == nullptr && b.tensor == nullptr) {
    product = aten("reciprocal", in_float32(y));
    return {.tensor = times(aten, product, {.number = *a.number * *b.number})};
  }
  product = a.tensor ? in_float32(a) : in_float32(b);
  if (a.tensor && b.tensor) {
    product = aten("mul.Tensor", product, in_float32(b));
  } else {
    product = times(aten, product, a.tensor ? b : a);
  }
  if (y.number) return {.tensor = y.is(1) ? product : aten("div.Scalar", product, *y.number)};
  return {.tensor = aten("div.Tensor", product, in_float32(y))};
}

bool is_float8(const NodeView& n) { return contains(kFloat8, n.dtype("a")) || contains(kFloat8, n.dtype("b")); }

void infer_qlinear_mat_mul(InferNode& n) {
  require_bytes(n, {"a", "b", "y_zero_point"});
  n.set(0, n.dtype("y_zero_point"), matmul_shape(n.find_shape("a"), n.find_shape("b")));
}

/// Floats of 8 bits have no exact sums to keep.
bool expand_qlinear_mat_mul(const NodeView& n, OnnxEdit& edit) {
  if (!is_float8(n)) {
    return choose_rank(edit, n, {"a_scale", "a_zero_point"}, {0, 1, 2}) ||
           choose_rank(edit, n, {"a_zero_point"}, {0, 1, 2}) ||
           choose_rank(edit, n, {"y_scale", "y_zero_point"}, {0, 1, 2}) ||
           choose_rank(edit, n, {"y_zero_point"}, {0, 1, 2});
  }
  const std::vector<Value*>& in = edit.node().inputs();
  Value* a = edit.before("DequantizeLinear", {in[0], in[1], in[2]});
  Value* b = edit.before("DequantizeLinear", {in[3], in[4], in[5]});
  return edit.replace_with({edit.before("QuantizeLinear", {edit.before("MatMul", {a, b}), in[6], in[7]})});
}

Values lower_qlinear_mat_mul(const OnnxNode& n, AtenBuilder& aten) {
  const DType computed = exact_type(bound_of_sums(n, "b", "b_zero_point", SumLayout::of_matrix));
  Value* a = centered(aten, n.input("a"), row_param(n, aten, "a_zero_point"), computed);
  Value* b = matrix(n, aten, "b", computed);
  const QuantParam scale =
      joint_scale(aten, row_param(n, aten, "a_scale"), quant_param(n, aten, "b_scale"), row_param(n, aten, "y_scale"));
  Value* y = cast(aten, aten("matmul", a, b), computed, DType::Float32);
  return rounded_to(aten, times(aten, y, scale), row_param(n, aten, "y_zero_point"), n.dtype("y_zero_point"));
}

void infer_qlinear_conv(InferNode& n) {
  require_bytes(n, {"x", "w", "y_zero_point"});
  learn_conv_ranks(n, kConvNames);
  n.set(0, n.dtype("y_zero_point"), conv_shape(n, kConvNames));
}

/// With the bias, which is added before anything is rounded.
std::optional<double> bound_with_bias(const NodeView& n) {
  auto bound = bound_of_sums(n, "w", "w_zero_point", SumLayout::of_conv);
  if (!bound || !n.has("B")) return bound;
  const TensorPtr bias = n.find_constant("B");
  const auto numbers = bias ? floats_of(*bias, bias->count()) : std::nullopt;
  if (!numbers) return std::nullopt;
  double largest = 0;
  for (const double number : *numbers) largest = std::max(largest, std::abs(number));
  return *bound + largest;
}

Values lower_qlinear_conv(const OnnxNode& n, AtenBuilder& aten) {
  const DType computed = exact_type(bound_with_bias(n));
  Value* x = centered(aten, n.input("x"), quant_param(n, aten, "x_zero_point"), computed);
  Value* w = kernel(n, aten, computed);
  Value* bias = n.find_input("B");
  if (bias != nullptr) bias = aten("to.dtype", bias, computed);
  QuantParam w_scale = quant_param(n, aten, "w_scale", QuantAxis{.of = "x", .axis = 1});
  const QuantParam scale = joint_scale(aten, quant_param(n, aten, "x_scale"), w_scale, quant_param(n, aten, "y_scale"));
  Value* y = cast(aten, convolved(n, aten, x, w, bias, kConvNames), computed, DType::Float32);
  return rounded_to(aten, times(aten, y, scale), quant_param(n, aten, "y_zero_point"), n.dtype("y_zero_point"));
}

constexpr OpsetStep kQLinearMatMulHistory[] = {
    {.to = 21, .adds = kFloat8 | kBFloat16 | dtype_set(DType::Float16)},
};

constexpr OnnxOp kQLinearOnnx[] = {
    {.sig = "MatMulInteger(T1 A, T2 B, T1? a_zero_point, T2? b_zero_point) -> T3 Y",
     .since = 10,
     .traits = kSumsProducts,
     .infer = infer_mat_mul_integer,
     .sizes = sizes_of_product<1>,
     .eval = eval_matmul_integer,
     .lower = lower_mat_mul_integer,
     .expand = expand_by_rank<"a_zero_point", 0, 2>},
    {.sig = "ConvInteger(T1 x, T2 w, T1? x_zero_point, T2? w_zero_point, *, str auto_pad=\"NOTSET\", ints? dilations, "
            "int group=1, ints? kernel_shape, ints? pads, ints? strides) -> T3 y",
     .since = 10,
     .traits = kSumsProducts,
     .infer = infer_conv_integer,
     .sizes = sizes_of_conv<1>,
     .open = open_samples,
     .eval = eval_conv_integer,
     .lower = lower_conv_integer,
     .note = "over one to three spatial dimensions, as in PyTorch",
     .expand = expand_conv_integer},
    {.sig = "QLinearMatMul(T1 a, TS a_scale, T1 a_zero_point, T2 b, TS b_scale, T2 b_zero_point, TS y_scale, "
            "T3 y_zero_point) -> T3 y",
     .since = 10,
     .traits = kSumsProducts,
     .history = kQLinearMatMulHistory,
     .infer = infer_qlinear_mat_mul,
     .sizes = sizes_of_product<3>,
     .eval = eval_qlinear_matmul,
     .lower = lower_qlinear_mat_mul,
     .expand = expand_qlinear_mat_mul},
    {.sig = "QLinearConv(T1 x, tensor(float) x_scale, T1 x_zero_point, T2 w, tensor(float) w_scale, T2 w_zero_point, "
            "tensor(float) y_scale, T3 y_zero_point, T4? B, *, str auto_pad=\"NOTSET\", ints? dilations, int group=1, "
            "ints? kernel_shape, ints? pads, ints? strides) -> T3 y",
     .since = 10,
     .traits = kSumsProducts,
     .infer = infer_qlinear_conv,
     .sizes = sizes_of_conv<3>,
     .open = open_samples,
     .eval = eval_qlinear_conv,
     .lower = lower_qlinear_conv,
     .note = "over one to three spatial dimensions, as in PyTorch",
     .expand = expand_conv},
};

}  // namespace

extern const OpFamily kQLinearOps;
constinit const OpFamily kQLinearOps{"qlinear", kQLinearOnnx, {}};

}  // namespace tonnx
