// quantize.cpp - between floats and quantised numbers: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include "ops/quantize/quantize.h"

#include <cmath>

#include "base/error.h"
#include "ops/cast/cast.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/move/rows.h"
#include "ops/quantize/rows.h"
#include "ops/reduce/rows.h"
#include "ops/search/rows.h"

namespace tonnx {

Value* along_axis(AtenBuilder& aten, Value* vector, int64_t axis, int64_t rank) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank - axis), 1);
  sizes[0] = vector->constant ? vector->constant->count() : -1;
  if (sizes.size() == 1) return vector;
  return vector->constant ? aten.reshaped(vector, sizes) : aten("reshape", vector, sizes);
}

namespace {

/// Each element `block_size` times along the axis, as many as the tensor has.
Value* in_blocks(const OnnxNode& n, AtenBuilder& aten, std::string_view name, const QuantAxis& spread) {
  const int64_t rank = n.rank(spread.of), axis = NodeView::normalized(spread.axis, rank);
  require(spread.block_size > 0, "block_size is {}", spread.block_size);
  require(n.find_rank(name) == rank, "input '{}' has {} dimensions where {} are needed", name, n.rank(name), rank);
  const Dim have = n.find_shape(name)->at(static_cast<size_t>(axis)) * Dim(spread.block_size);
  const Dim& need = n.find_shape(spread.of)->at(static_cast<size_t>(axis));
  Value* all = aten("repeat_interleave.self_int", n.input(name), spread.block_size, axis);
  return have == need ? all : aten("narrow", all, axis, 0, n.size(spread.of, axis));
}

}  // namespace

QuantParam quant_param(const OnnxNode& n, AtenBuilder& aten, std::string_view name,
                       const std::optional<QuantAxis>& spread) {
  Value* value = n.find_input(name);
  if (value == nullptr) return {.number = 0.0};
  QuantParam param{.dtype = widened(n.dtype(name))};
  if (const auto number = n.find_scalar(name)) {
    param.number = *number;
    return param;
  }
  value->trainable = false;
  param.tensor = value;
  if (spread && spread->block_size != 0) {
    param.tensor = in_blocks(n, aten, name, *spread);
  } else if (spread && n.rank(name) != 0) {
    const Shape& shape = *n.find_shape(name);
    require(shape.size() == 1, "input '{}' has {} dimensions where at most one is needed", name, shape.size());
    const int64_t rank = n.rank(spread->of);
    if (!shape[0].is(1) && rank > 1) {
      param.tensor = along_axis(aten, value, NodeView::normalized(spread->axis, rank), rank);
    }
  }
  // PyTorch hardly computes with unsigned integers of 16 bits, nor with floats of 8
  const bool is_odd = param.dtype == DType::UInt16 || (is_float(param.dtype) && info(param.dtype).bits == 8);
  if (is_odd) param.tensor = aten("to.dtype", param.tensor, DType::Float32);
  return param;
}

namespace {

Value* plus(AtenBuilder& aten, Value* x, int64_t number) {
  return number < 0 ? aten("sub.Scalar", x, -number) : aten("add.Scalar", x, number);
}

}  // namespace

Value* minus(AtenBuilder& aten, Value* x, const QuantParam& zero_point) {
  if (zero_point.is(0)) return x;
  if (zero_point.number) {
    require(std::fabs(*zero_point.number) <= 0x1p53, "a zero point of {}", *zero_point.number);
    return plus(aten, x, static_cast<int64_t>(-*zero_point.number));
  }
  return aten("sub.Tensor", x, zero_point.tensor);
}

Value* times(AtenBuilder& aten, Value* x, const QuantParam& scale) {
  if (scale.is(1)) return x;
  return scale.number ? aten("mul.Scalar", x, *scale.number) : aten("mul.Tensor", x, scale.tensor);
}

IntRange range_of(DType dtype) {
  const int bits = info(dtype).bits;
  require(is_integer(dtype) && bits <= 16, "{} is not a type of quantised numbers", name_of(dtype));
  const int64_t count = int64_t{1} << bits;
  return is_signed_int(dtype) ? IntRange{-count / 2, count / 2 - 1} : IntRange{0, count - 1};
}

Value* rounded_to(AtenBuilder& aten, Value* x, const QuantParam& zero_point, DType to) {
  const auto [low, high] = range_of(to);
  Value* y = aten("round", x);
  y->type.dtype = DType::Float32;
  if (zero_point.tensor != nullptr) {
    y = aten("add.Tensor", y, zero_point.tensor);
  } else if (!zero_point.is(0)) {
    y = plus(aten, y, static_cast<int64_t>(*zero_point.number));
  }
  return aten("to.dtype", aten("clamp", y, low, high), widened(to));
}

namespace {

constexpr DTypeSet kNarrowFloats = kFloat8 | kFloat4 | kFloat6;

DType quantized_type(const NodeView& n) {
  if (n.has("y_zero_point")) return n.dtype("y_zero_point");
  return n.i("output_dtype") == 0 ? DType::UInt8 : *n.find_dtype("output_dtype");
}

void infer_quantize(InferNode& n) {
  const DType to = quantized_type(n);
  require(to == DType::Undefined || contains(kNarrowFloats, to) || (is_integer(to) && info(to).bits <= 16),
          "{} is not a type of quantised numbers", name_of(to));
  n.set(0, to, n.type("x").shape);
}

/// ONNX Runtime divides in 32 bits unless told otherwise.
Values lower_quantize(const OnnxNode& n, AtenBuilder& aten) {
  const DType to = quantized_type(n);
  n.i("output_dtype");
  const DType computed = n.i("precision") == 0 ? DType::Float32 : *n.find_dtype("precision");
  const QuantAxis spread{"x", n.i("axis"), n.i("block_size")};
  const bool saturate = n.flag("saturate");
  const QuantParam scale = quant_param(n, aten, "y_scale", spread);
  const QuantParam zero_point = quant_param(n, aten, "y_zero_point", spread);
  Value* x = cast(aten, n.input("x"), n.dtype("x"), computed);
  if (scale.tensor != nullptr) {
    x = aten("div.Tensor", x, cast(aten, scale.tensor, scale.dtype, computed));
  } else if (!scale.is(1)) {
    x = aten("div.Scalar", x, *scale.number);
  }
  if (is_integer(to)) return rounded_to(aten, cast(aten, x, computed, DType::Float32), zero_point, to);
  if (!contains(kFloat8, to) && zero_point.tensor != nullptr) x = aten("add.Tensor", x, zero_point.tensor);
  if (!contains(kFloat8, to) && zero_point.number && !zero_point.is(0)) x = aten("add.Scalar", x, *zero_point.number);
  return converted(aten, x, computed, to, {.saturate = saturate});
}

DType dequantized_type(const NodeView& n) {
  if (n.i("output_dtype") != 0) return *n.find_dtype("output_dtype");
  const DType scale = n.dtype("x_scale");
  return scale == DType::Float8E8M0 ? DType::Float32 : scale;
}

void infer_dequantize(InferNode& n) { n.set(0, dequantized_type(n), n.type("x").shape); }

Values lower_dequantize(const OnnxNode& n, AtenBuilder& aten) {
  const DType from = n.dtype("x"), to = dequantized_type(n);
  const QuantAxis spread{"x", n.i("axis"), n.i("block_size")};
  const QuantParam scale = quant_param(n, aten, "x_scale", spread);
  const QuantParam zero_point = quant_param(n, aten, "x_zero_point", spread);
  // the difference of two numbers of 8 bits, and what it is multiplied by, are exact in float16
  const bool is_short = to == DType::Float16 && is_integer(from) && info(from).bits <= 8 &&
                        (scale.number || scale.dtype == DType::Float16);
  const DType computed = is_short ? DType::Float16 : DType::Float32;
  Value* x = n.input("x");
  if (is_integer(from) && info(from).bits > 16) {
    x = cast(aten, minus(aten, x, zero_point), from, computed);
  } else {
    x = cast(aten, x, widened(from), computed);
    if (is_integer(from)) x = minus(aten, x, zero_point);
  }
  if (scale.tensor != nullptr && scale.dtype != computed && !contains(kFloat8E8M0, scale.dtype)) {
    x = aten("mul.Tensor", x, aten("to.dtype", scale.tensor, computed));
  } else {
    x = times(aten, x, scale);
  }
  return cast(aten, x, computed, to);
}

void infer_dynamic_quantize(InferNode& n) {
  n.set(0, DType::UInt8, n.type("x").shape);
  if (n.output_count() > 1) n.set(1, DType::Float32, Shape{});
  if (n.output_count() > 2) n.set(2, DType::UInt8, Shape{});
}

/// The range always has zero in it, and zero is always a quantised number.
Values lower_dynamic_quantize(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("x");
  const Values ends = aten.all("aminmax", x);
  Value* low = aten("clamp", ends[0], nullptr, 0.0);
  Value* high = aten("clamp", ends[1], 0.0);
  Value* step = aten("div.Scalar", aten("sub.Tensor", high, low), 255.0);
  Value* scale = aten("masked_fill.Scalar", step, aten("eq.Scalar", step, 0.0), 1.0);
  Value* zero_point = rounded_to(aten, aten("div.Tensor", aten("neg", low), scale), {.number = 0.0}, DType::UInt8);
  Value* y = rounded_to(aten, aten("div.Tensor", x, scale), {.tensor = zero_point}, DType::UInt8);
  return {y, scale, zero_point};
}

/// Without an axis there is one scale for all.
void down_one_scale(OnnxEdit& edit) {
  const Value* scale = edit.node().input(1);
  const bool is_one = scale && (edit.rank(1) == 0 || (scale->constant && scale->constant->count() == 1));
  if (!is_one) edit.cannot("opset 12 has one scale for all elements");
  drop_attribute(edit, "axis");
}

void down_saturate(OnnxEdit& edit) { drop_attribute(edit, "saturate"); }

/// The type of the result was once that of the zero point only.
void down_output_dtype(OnnxEdit& edit) {
  require_default(edit, "block_size", 0);
  const int64_t dtype = edit.i("output_dtype", 0);
  drop_attribute(edit, "output_dtype");
  if (dtype == 0 || edit.node().input(2) != nullptr || dtype == static_cast<int64_t>(DType::UInt8)) return;
  const auto found = find_dtype(dtype);
  if (!found || edit.rank(1) != 0) edit.cannot("the older opset has no attribute 'output_dtype'");
  edit.node().set_input(2, edit.constant(make_scalar(*found, 0), "zero_point"));
}

void down_quantize_23(OnnxEdit& edit) {
  require_default(edit, "precision", 0);
  const Value* x = edit.node().input(0);
  const Value* scale = edit.node().input(1);
  if (x && scale && x->type.dtype != scale->type.dtype && x->type.dtype != DType::Int32) {
    edit.cannot("the older opset asks for one element type of input and scale");
  }
}

void down_dequantize_23(OnnxEdit& edit) {
  const int64_t dtype = edit.i("output_dtype", 0);
  const Value* scale = edit.node().input(1);
  if (dtype != 0 && (scale == nullptr || static_cast<int64_t>(scale->type.dtype) != dtype)) {
    edit.cannot("the older opset gives the element type of the scale");
  }
  drop_attribute(edit, "output_dtype");
}

constexpr DTypeSet kHalves = kBFloat16 | dtype_set(DType::Float16);
constexpr DTypeSet kTypes21 = kInt4 | dtype_set(DType::Int16, DType::UInt16);
constexpr OpsetStep kQuantizeHistory[] = {
    {.to = 13, .down = down_one_scale},
    {.to = 19, .down = down_saturate, .adds = kHalves | kFloat8},
    {.to = 21, .down = down_output_dtype, .adds = kTypes21},
    {.to = 23, .down = down_quantize_23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
    {.to = 28, .adds = kFloat6},
};
constexpr OpsetStep kDequantizeHistory[] = {
    {.to = 13, .down = down_one_scale},
    {.to = 19, .adds = kHalves | kFloat8},
    {.to = 21, .down = down_require_default<"block_size", 0>, .adds = kTypes21},
    {.to = 23, .down = down_dequantize_23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
    {.to = 28, .adds = kFloat6},
};

/// How many dimensions scales have only the run may tell, and what they are spread over.
bool choose_ranks(const NodeView& n, OnnxEdit& edit, std::string_view scale, std::string_view zero_point) {
  const auto rank = n.find_rank("x"), scale_rank = n.find_rank(scale);
  const std::vector<int64_t> all = ranks_with(n.i("axis"), 5);
  if (n.i("block_size") != 0) {
    if (!rank) return choose_rank(edit, n, {"x"}, all);
    return choose_rank(edit, n, {scale, zero_point}, {*rank}) || choose_rank(edit, n, {zero_point}, {*rank});
  }
  if (choose_rank(edit, n, {scale, zero_point}, {0, 1})) return true;
  if (scale_rank && choose_rank(edit, n, {zero_point}, {*scale_rank})) return true;
  const bool is_one = scale_rank == 0 || (scale_rank == 1 && n.find_shape(scale)->front().is(1));
  return !is_one && choose_rank(edit, n, {"x"}, all);
}

bool expand_quantize_linear(const NodeView& n, OnnxEdit& edit) {
  return expand_quantize(n, edit) || choose_ranks(n, edit, "y_scale", "y_zero_point");
}

bool expand_dequantize_linear(const NodeView& n, OnnxEdit& edit) {
  return choose_ranks(n, edit, "x_scale", "x_zero_point");
}

constexpr OnnxOp kQuantizeOnnx[] = {
    {.sig = "QuantizeLinear(T1 x, T2 y_scale, T3? y_zero_point, *, int axis=1, int block_size=0, int output_dtype=0, "
            "int precision=0, int saturate=1) -> T3 y",
     .since = 10,
     .traits = kQuantizes,
     .history = kQuantizeHistory,
     .infer = infer_quantize,
     .eval = eval_quantize,
     .lower = lower_quantize,
     .expand = expand_quantize_linear},
    {.sig = "DequantizeLinear(T1 x, T2 x_scale, T1? x_zero_point, *, int axis=1, int block_size=0, int output_dtype=0) "
            "-> T3 y",
     .since = 10,
     .traits = kQuantizes,
     .history = kDequantizeHistory,
     .infer = infer_dequantize,
     .eval = eval_dequantize,
     .lower = lower_dequantize,
     .expand = expand_dequantize_linear},
    {.sig = "DynamicQuantizeLinear(T1 x) -> (T2 y, tensor(float) y_scale, T2 y_zero_point)",
     .since = 11,
     .traits = kQuantizes,
     .infer = infer_dynamic_quantize,
     .eval = eval_dynamic_quantize,
     .lower = lower_dynamic_quantize},
};

constexpr AtenOp kQuantizeAten[] = {
    {.sig = "tonnx::quant_linear(Tensor input, Tensor weight, Tensor scale, Tensor zero_point, Tensor? bias=None) -> "
            "Tensor",
     .module = module_quant_linear},
    {.sig = "tonnx::quant_conv1d(Tensor input, Tensor weight, Tensor scale, Tensor zero_point, Tensor? bias=None, "
            "SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1, bool "
            "floor_bias=False) -> Tensor",
     .module = module_quant_conv},
    {.sig = "tonnx::quant_conv2d(Tensor input, Tensor weight, Tensor scale, Tensor zero_point, Tensor? bias=None, "
            "SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1, bool "
            "floor_bias=False) -> Tensor",
     .module = module_quant_conv},
    {.sig =
         "tonnx::quant_conv3d(Tensor input, Tensor weight, Tensor scale, Tensor zero_point, Tensor? bias=None, "
         "SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1, bool "
         "floor_bias=False) -> Tensor",
     .module = module_quant_conv},
    {.sig = "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
     .types = types_both_extremes,
     .python = "torch.aminmax",
     .raise = raise_aminmax},
    {.sig = "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) "
            "-> Tensor",
     .types = types_repeat_interleave,
     .python = ".repeat_interleave",
     .raise = raise_repeat_interleave,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kQuantizeOps;
constinit const OpFamily kQuantizeOps{"quantize", kQuantizeOnnx, kQuantizeAten};

}  // namespace tonnx
