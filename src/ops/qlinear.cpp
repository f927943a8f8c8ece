// qlinear.cpp - products of quantised integers, exact as in 32 bits: MatMulInteger, ConvInteger, QLinearMatMul,
// QLinearConv.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/conv.h"
#include "ops/infer.h"
#include "ops/kernel_type.h"
#include "ops/matmul.h"
#include "ops/opset_step.h"
#include "ops/quantize.h"

namespace tonnx {
namespace {

constexpr double kExactInFloat32 = 1 << 24;
constexpr double kSpan = 255;  // of 8 bits: a number less its zero point is within it, whatever the zero point
constexpr ConvNames kConvNames{"x", "w"};

/// Weights as [outer, terms, inner], where the terms are those of one sum. Channels, which may have zero points of
/// their own, are the outer ones of a convolution and the inner ones of a matrix.
struct SumLayout {
  int64_t outer = 1, terms = 1, inner = 1;

  static SumLayout of_conv(const std::vector<int64_t>& dims) {
    return {dims[0], count_of(std::vector(dims.begin() + 1, dims.end())), 1};
  }
  static SumLayout of_matrix(const std::vector<int64_t>& dims) {
    if (dims.size() == 1) return {1, dims[0], 1};
    return {count_of(std::vector(dims.begin(), dims.end() - 2)), dims[dims.size() - 2], dims.back()};
  }
};

/// The largest that the positive, or the negative, weights of any one sum come to.
double largest_sum(const Tensor& weights, const std::vector<int64_t>& zero_points, const SumLayout& layout) {
  const bool is_signed = weights.dtype == DType::Int8;
  const bool by_outer = layout.inner == 1;
  const auto* data = reinterpret_cast<const uint8_t*>(weights.data.data());
  std::vector<int64_t> above(static_cast<size_t>(layout.inner)), below(static_cast<size_t>(layout.inner));
  int64_t largest = 0;
  for (int64_t o = 0; o < layout.outer; ++o) {
    std::fill(above.begin(), above.end(), 0);
    std::fill(below.begin(), below.end(), 0);
    for (int64_t t = 0; t < layout.terms; ++t) {
      for (size_t i = 0; i < above.size(); ++i, ++data) {
        const size_t channel = zero_points.size() == 1 ? 0 : by_outer ? static_cast<size_t>(o) : i;
        const int64_t value = (is_signed ? static_cast<int8_t>(*data) : *data) - zero_points[channel];
        (value > 0 ? above : below)[i] += std::abs(value);
      }
    }
    for (size_t i = 0; i < above.size(); ++i) largest = std::max({largest, above[i], below[i]});
  }
  return static_cast<double>(largest);
}

/// Bounds every partial sum of products of the input and the weights; nothing where it can be any size.
std::optional<double> bound_of_sums(const NodeView& n, std::string_view weight, std::string_view zero_point,
                                    SumLayout (*layout_of)(const std::vector<int64_t>&)) {
  const Shape* shape = n.find_shape(weight);
  if (shape == nullptr || shape->empty()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dim& dim : *shape) {
    if (!dim.is_constant()) return std::nullopt;
    dims.push_back(*dim.constant());
  }
  const SumLayout layout = layout_of(dims);
  const TensorPtr constant = n.find_constant(weight);
  const auto zero_points = n.has(zero_point) ? n.find_const_ints(zero_point) : std::vector<int64_t>{0};
  const bool is_known = constant && zero_points && info(constant->dtype).bits == 8 && n.find_rank(zero_point) <= 1;
  if (is_known &&
      (zero_points->size() == 1 || static_cast<int64_t>(zero_points->size()) == layout.outer * layout.inner)) {
    return kSpan * largest_sum(*constant, *zero_points, layout);
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

/// One number for each row of a matrix stands in a column.
QuantParam row_param(const OnnxNode& n, AtenBuilder& aten, std::string_view name) {
  QuantParam param = quant_param(n, aten, name);
  if (param.tensor == nullptr || n.rank(name) != 1 || n.find_shape(name)->at(0).is(1)) return param;
  param.tensor = along_axis(aten, param.tensor, 0, 2);
  return param;
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
  Value* b = centered(aten, n.input("B"), quant_param(n, aten, "b_zero_point"), computed);
  return aten("to.dtype", aten("matmul", a, b), DType::Int32);
}

void infer_conv_integer(InferNode& n) {
  require_bytes(n, {"x", "w"});
  n.set(0, DType::Int32, conv_shape(n, kConvNames));
}

QuantParam channel_param(const OnnxNode& n, AtenBuilder& aten, std::string_view name) {
  return quant_param(n, aten, name, QuantAxis{.of = "w", .axis = 0});
}

Values lower_conv_integer(const OnnxNode& n, AtenBuilder& aten) {
  const DType computed = exact_type(bound_of_sums(n, "w", "w_zero_point", SumLayout::of_conv));
  Value* x = centered(aten, n.input("x"), quant_param(n, aten, "x_zero_point"), computed);
  Value* w = centered(aten, n.input("w"), channel_param(n, aten, "w_zero_point"), computed);
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
  if (!is_float8(n)) return false;
  const std::vector<Value*>& in = edit.node().inputs();
  Value* a = edit.before("DequantizeLinear", {in[0], in[1], in[2]});
  Value* b = edit.before("DequantizeLinear", {in[3], in[4], in[5]});
  return edit.replace_with({edit.before("QuantizeLinear", {edit.before("MatMul", {a, b}), in[6], in[7]})});
}

Values lower_qlinear_mat_mul(const OnnxNode& n, AtenBuilder& aten) {
  const DType computed = exact_type(bound_of_sums(n, "b", "b_zero_point", SumLayout::of_matrix));
  Value* a = centered(aten, n.input("a"), row_param(n, aten, "a_zero_point"), computed);
  Value* b = centered(aten, n.input("b"), quant_param(n, aten, "b_zero_point"), computed);
  const QuantParam scale =
      joint_scale(aten, row_param(n, aten, "a_scale"), quant_param(n, aten, "b_scale"), row_param(n, aten, "y_scale"));
  Value* y = cast(aten, aten("matmul", a, b), computed, DType::Float32);
  return rounded_to(aten, times(aten, y, scale), row_param(n, aten, "y_zero_point"), n.dtype("y_zero_point"));
}

void infer_qlinear_conv(InferNode& n) {
  require_bytes(n, {"x", "w", "y_zero_point"});
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
  Value* w = centered(aten, n.input("w"), channel_param(n, aten, "w_zero_point"), computed);
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

constexpr OnnxOp kOnnx[] = {
    {.sig = "MatMulInteger(T1 A, T2 B, T1? a_zero_point, T2? b_zero_point) -> T3 Y",
     .since = 10,
     .infer = infer_mat_mul_integer,
     .lower = lower_mat_mul_integer},
    {.sig = "ConvInteger(T1 x, T2 w, T1? x_zero_point, T2? w_zero_point, *, str auto_pad=\"NOTSET\", ints? dilations, "
            "int group=1, ints? kernel_shape, ints? pads, ints? strides) -> T3 y",
     .since = 10,
     .infer = infer_conv_integer,
     .lower = lower_conv_integer,
     .note = "over one to three spatial dimensions, as in PyTorch"},
    {.sig = "QLinearMatMul(T1 a, TS a_scale, T1 a_zero_point, T2 b, TS b_scale, T2 b_zero_point, TS y_scale, "
            "T3 y_zero_point) -> T3 y",
     .since = 10,
     .history = kQLinearMatMulHistory,
     .infer = infer_qlinear_mat_mul,
     .lower = lower_qlinear_mat_mul,
     .expand = expand_qlinear_mat_mul},
    {.sig = "QLinearConv(T1 x, tensor(float) x_scale, T1 x_zero_point, T2 w, tensor(float) w_scale, T2 w_zero_point, "
            "tensor(float) y_scale, T3 y_zero_point, T4? B, *, str auto_pad=\"NOTSET\", ints? dilations, int group=1, "
            "ints? kernel_shape, ints? pads, ints? strides) -> T3 y",
     .since = 10,
     .infer = infer_qlinear_conv,
     .lower = lower_qlinear_conv,
     .note = "over one to three spatial dimensions, as in PyTorch"},
};

}  // namespace

extern const OpFamily kQLinearOps;
constinit const OpFamily kQLinearOps{"qlinear", kOnnx, {}};

}  // namespace tonnx
