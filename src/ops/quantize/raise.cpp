// raise.cpp - what PyTorch has for quantising, of numbers that stay floats (fake_quantize) and of those that become
// integers (quantized_decomposed), as QuantizeLinear and DequantizeLinear.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/join.h"
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/emission.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// Steps, zero points and bounds of integers; `axis`: along which the steps differ.
struct Steps {
  Value *scale = nullptr, *zero = nullptr;  // of no dimensions, or of one
  std::optional<int64_t> axis;
  int64_t low = 0, high = 0;
  std::optional<DType> integers;  // of 8 bits; nothing: no such type holds them
};

constexpr std::pair<int64_t, int64_t> kUnsigned{0, 255}, kSigned{-128, 127};

std::optional<DType> type_of_bounds(int64_t low, int64_t high) {
  if (low >= kUnsigned.first && high <= kUnsigned.second) return DType::UInt8;
  if (low >= kSigned.first && high <= kSigned.second) return DType::Int8;
  return std::nullopt;
}

/// A tensor of one number, whatever its shape is, or a list of them.
Value* shaped(OnnxBuilder& onnx, Value* x, bool is_list) {
  const auto rank = static_cast<int64_t>(onnx.shape(x).size());
  return rank == (is_list ? 1 : 0) ? x : onnx.reshape(x, is_list ? IntArgs{-1} : IntArgs{});
}

Steps steps_of(const AtenNode& n, OnnxBuilder& onnx, const char* of, const char* scale, const char* zero) {
  Steps steps;
  steps.low = n.i("quant_min");
  steps.high = n.i("quant_max");
  require(steps.low <= steps.high, "quant_min is {}, and quant_max is {}", steps.low, steps.high);
  const bool has_axis = n.node().op.view().find("per_channel") != std::string_view::npos;
  if (has_axis) steps.axis = n.dim("axis", of);
  steps.scale = shaped(onnx, n.input_as(scale, DType::Float32), has_axis);
  if (n.has(zero)) {
    const bool is_tensor = n.is_tensor(zero);
    const bool is_whole = !is_tensor || !is_float(n.dtype(zero));
    if (is_whole) steps.integers = type_of_bounds(steps.low, steps.high);
    steps.zero = shaped(onnx, n.input_as(zero, is_whole ? DType::Int64 : DType::Float32), has_axis);
  } else {
    steps.integers = type_of_bounds(steps.low, steps.high);
  }
  return steps;
}

/// A list along its axis, so that it broadcasts.
Value* along(OnnxBuilder& onnx, Value* list, const Steps& steps, int64_t rank) {
  if (!steps.axis) return list;
  IntArgs sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(*steps.axis)] = -1;
  return onnx.reshape(list, sizes);
}

Value* with_axis(OnnxBuilder& onnx, const char* op, std::vector<Value*> inputs, const Steps& steps) {
  if (!steps.axis) return onnx(op, std::move(inputs));
  return onnx(op, std::move(inputs), {attr("axis", *steps.axis)});
}

/// The integers as floats, before they are held within their bounds.
Value* rounded(OnnxBuilder& onnx, Value* x, const Steps& steps) {
  const int64_t rank = onnx.rank(x);
  Value* y = onnx("Div", {x, along(onnx, steps.scale, steps, rank)});
  if (steps.zero == nullptr) return onnx("Round", {y});
  Value* zero = along(onnx, onnx.cast(steps.zero, DType::Float32), steps, rank);
  if (is_float(OnnxBuilder::dtype(steps.zero))) return onnx("Round", {onnx("Add", {y, zero})});
  return onnx("Add", {onnx("Round", {y}), zero});
}

Value* held(OnnxBuilder& onnx, Value* x, const Steps& steps) {
  return onnx("Clip", {x, onnx.number(DType::Float32, static_cast<double>(steps.low)),
                       onnx.number(DType::Float32, static_cast<double>(steps.high))});
}

/// Floats as integers of 8 bits.
Value* as_integers(OnnxBuilder& onnx, Value* x, const Steps& steps) {
  const DType dtype = *steps.integers;
  Value* zero = steps.zero ? onnx.cast(steps.zero, dtype) : nullptr;
  if (zero == nullptr) {
    zero = onnx.integer(dtype, 0);
    if (steps.axis) zero = onnx("Expand", {zero, onnx("Shape", {steps.scale})});
  }
  Value* y = with_axis(onnx, "QuantizeLinear", {x, steps.scale, zero}, steps);
  const auto [least, most] = dtype == DType::UInt8 ? kUnsigned : kSigned;
  if (steps.low == least && steps.high == most) return y;
  return onnx("Clip", {y, onnx.integer(dtype, steps.low), onnx.integer(dtype, steps.high)});
}

Value* as_floats(OnnxBuilder& onnx, Value* x, const Steps& steps) {
  const DType dtype = OnnxBuilder::dtype(x);
  if (dtype == DType::UInt8 || dtype == DType::Int8) {
    std::vector<Value*> inputs{x, steps.scale};
    if (steps.zero) inputs.push_back(onnx.cast(steps.zero, dtype));
    return with_axis(onnx, "DequantizeLinear", std::move(inputs), steps);
  }
  const int64_t rank = onnx.rank(x);
  Value* y = onnx.cast(x, DType::Float32);
  if (steps.zero) y = onnx("Sub", {y, along(onnx, onnx.cast(steps.zero, DType::Float32), steps, rank)});
  return onnx("Mul", {y, along(onnx, steps.scale, steps, rank)});
}

/// What the integers stand for: floats that lie on the steps.
Value* faked(const AtenNode& n, OnnxBuilder& onnx, const Steps& steps) {
  Value* x = n.input_as("self", DType::Float32);
  Value* y = steps.integers ? as_integers(onnx, x, steps) : held(onnx, rounded(onnx, x, steps), steps);
  return onnx.cast(as_floats(onnx, y, steps), n.dtype("self"));
}

Values raise_fake_quantize(const AtenNode& n, OnnxBuilder& onnx) {
  return faked(n, onnx, steps_of(n, onnx, "self", "scale", "zero_point"));
}

/// The same, and which elements lie within the bounds.
Values raise_fake_quantize_with_mask(const AtenNode& n, OnnxBuilder& onnx) {
  const Steps steps = steps_of(n, onnx, "self", "scale", "zero_point");
  Value* y = faked(n, onnx, steps);
  if (Value* enabled = n.node().op.view().starts_with("_") ? n.input("fake_quant_enabled") : nullptr) {
    Value* is_enabled =
        onnx("Equal", {shaped(onnx, onnx.cast(enabled, DType::Int64), false), onnx.integer(DType::Int64, 1)});
    y = onnx.where(is_enabled, y, n.input("self"));
  }
  Value* all = rounded(onnx, n.input_as("self", DType::Float32), steps);
  Value* within =
      onnx("And", {onnx("GreaterOrEqual", {all, onnx.number(DType::Float32, static_cast<double>(steps.low))}),
                   onnx("LessOrEqual", {all, onnx.number(DType::Float32, static_cast<double>(steps.high))})});
  return {y, within};
}

Steps steps_of_parts(const AtenNode& n, OnnxBuilder& onnx) {
  const bool has_axis = n.node().op.view().ends_with("per_channel");
  return has_axis ? steps_of(n, onnx, "input", "scales", "zero_points")
                  : steps_of(n, onnx, "input", "scale", "zero_point");
}

Values raise_quantize(const AtenNode& n, OnnxBuilder& onnx) {
  Steps steps = steps_of_parts(n, onnx);
  const DType wanted = n.find_dtype("dtype").value_or(n.output_dtype());
  Value* x = n.input_as("input", DType::Float32);
  if (wanted == DType::UInt8 || wanted == DType::Int8) {
    const auto [least, most] = wanted == DType::UInt8 ? kUnsigned : kSigned;
    steps.low = std::max(steps.low, least);
    steps.high = std::min(steps.high, most);
    steps.integers = wanted;
    return as_integers(onnx, x, steps);
  }
  return onnx.cast(held(onnx, rounded(onnx, x, steps), steps), wanted);
}

Values raise_dequantize(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"dtype", "out_dtype"});  // of the input, and of the output
  return onnx.cast(as_floats(onnx, n.input("input"), steps_of_parts(n, onnx)), n.output_dtype());
}

void types_quantize(TypeNode& n) {
  const Type* x = n.tensor("input");
  if (x == nullptr) return;
  if (const auto dtype = n.given_dtype()) n.set(*dtype, x->shape);
}

void types_dequantize(TypeNode& n) {
  const Type* x = n.tensor("input");
  if (x == nullptr) return;
  const AttrValue* given = n.args().constant("out_dtype");
  const auto* dtype = given ? given->get<DType>() : nullptr;
  n.set(dtype ? *dtype : DType::Float32, x->shape);
}

void types_fake_quantize_with_mask(TypeNode& n) {
  const Type* x = n.tensor("self");
  if (x == nullptr) return;
  n.set(0, x->dtype, x->shape);
  n.set(1, DType::Bool, x->shape);
}

/// An argument as it broadcasts with the input.
std::string spread_text(const Emission& e, const char* name) {
  const auto rank = static_cast<int64_t>(e.value("input")->type.rank().value_or(0));
  const auto axis = e.signature().find_input("axis") >= 0 ? e.find_int("axis") : std::nullopt;
  if (!axis) return e.text(name, precedence::kUnary);
  std::vector<std::string> sizes(static_cast<size_t>(std::max<int64_t>(rank, 1)), "1");
  sizes[static_cast<size_t>(*axis < 0 ? *axis + rank : *axis) % sizes.size()] = "-1";
  return fmt::format("{}.view({})", e.text(name, precedence::kAtom), joined(sizes));
}

/// `torch.clamp(torch.round(x / 0.1) + 3, 0, 255).to(torch.uint8)`: what the operator is defined as, of PyTorch alone.
std::string emit_quantize(const Emission& e) {
  const bool has_axis = e.signature().find_input("axis") >= 0;
  return fmt::format("torch.clamp(torch.round({} / {}) + {}, {}, {}).to({})", e.text("input", precedence::kProduct),
                     spread_text(e, has_axis ? "scales" : "scale"),
                     spread_text(e, has_axis ? "zero_points" : "zero_point"), e.text("quant_min"), e.text("quant_max"),
                     e.text("dtype"));
}

std::string emit_dequantize(const Emission& e) {
  const bool has_axis = e.signature().find_input("axis") >= 0;
  const char* zero = has_axis ? "zero_points" : "zero_point";
  const std::string to = e.has("out_dtype") ? e.text("out_dtype") : "torch.float32";
  const std::string x = fmt::format("{}.to({})", e.text("input", precedence::kAtom), to);
  const std::string scale = spread_text(e, has_axis ? "scales" : "scale");
  if (!e.has(zero)) return fmt::format("({} * {})", x, scale);
  return fmt::format("(({} - {}) * {})", x, spread_text(e, zero), scale);
}

constexpr AtenOp kAtenQuantizeAten[] = {
    {.sig = "aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int "
            "quant_max) -> Tensor",
     .types = types_as_self,
     .python = "torch.fake_quantize_per_tensor_affine",
     .raise = raise_fake_quantize},
    {.sig = "aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int "
            "quant_min, int quant_max) -> Tensor",
     .types = types_as_self,
     .python = "torch.fake_quantize_per_tensor_affine",
     .raise = raise_fake_quantize},
    {.sig = "aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
            "quant_min, int quant_max) -> Tensor",
     .types = types_as_self,
     .python = "torch.fake_quantize_per_channel_affine",
     .raise = raise_fake_quantize},
    {.sig = "aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, "
            "int quant_max) -> (Tensor output, Tensor mask)",
     .types = types_fake_quantize_with_mask,
     .python = "torch.ops.aten.fake_quantize_per_tensor_affine_cachemask",
     .raise = raise_fake_quantize_with_mask},
    {.sig = "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, "
            "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     .types = types_fake_quantize_with_mask,
     .python = "torch.ops.aten.fake_quantize_per_channel_affine_cachemask",
     .raise = raise_fake_quantize_with_mask},
    {.sig = "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor "
            "zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     .types = types_fake_quantize_with_mask,
     .python = "torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
     .raise = raise_fake_quantize_with_mask},
    {.sig = "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int "
            "quant_max, ScalarType dtype) -> Tensor",
     .types = types_quantize,
     .emit = emit_quantize,
     .raise = raise_quantize},
    {.sig = "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int "
            "quant_min, int quant_max, ScalarType dtype) -> Tensor",
     .types = types_quantize,
     .emit = emit_quantize,
     .raise = raise_quantize},
    {.sig = "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int "
            "quant_min, int quant_max, ScalarType dtype) -> Tensor",
     .types = types_quantize,
     .emit = emit_quantize,
     .raise = raise_quantize},
    {.sig = "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int "
            "quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     .types = types_dequantize,
     .emit = emit_dequantize,
     .raise = raise_dequantize},
    {.sig = "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int "
            "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     .types = types_dequantize,
     .emit = emit_dequantize,
     .raise = raise_dequantize},
    {.sig = "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, "
            "int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     .types = types_dequantize,
     .emit = emit_dequantize,
     .raise = raise_dequantize},
};

}  // namespace

extern const OpFamily kAtenQuantizeOps;
constinit const OpFamily kAtenQuantizeOps{"aten_quantize", {}, kAtenQuantizeAten};

}  // namespace tonnx
