// binary_raise.cpp - PyTorch's arithmetic of two tensors as ONNX.
#include <cmath>
#include <limits>

#include "ops/frame/node_facts.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

/// other, times alpha.
Value* scaled_other(const AtenNode& n, OnnxBuilder& onnx, std::string_view other, DType dtype) {
  Value* x = n.input_as(other, dtype);
  return n.f("alpha") == 1 ? x : onnx("Mul", {x, n.input_as("alpha", dtype)});
}

/// A number that is given, or the one element of a constant.
std::optional<double> find_number(const AtenNode& n, std::string_view name) {
  if (!n.is_tensor(name) && n.node().find_attribute(name) != nullptr &&
      n.node().find_attribute(name)->value.get<Operand>() == nullptr)
    return n.find_f(name);
  const Value* x = n.input(name);
  if (!x->constant || x->trainable) return std::nullopt;
  const auto numbers = floats_of(*x->constant, 1);
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

/// Where a remainder m of C, which has the sign of a, is not that of the floor division by b.
Value* differs_from_floor(Value* m, Value* b, OnnxBuilder& onnx, const std::optional<double>& divisor) {
  const DType dtype = OnnxBuilder::dtype(m);
  Value* zero = onnx.number(dtype, 0);
  if (divisor && *divisor > 0) return onnx("Less", {m, zero});
  if (divisor && *divisor < 0) return onnx("Greater", {m, zero});
  Value* is_negative = onnx("Less", {m, zero});
  Value* differs = onnx("Xor", {is_negative, onnx("Less", {b, zero})});
  return onnx("And", {differs, onnx("Not", {onnx("Equal", {m, zero})})});
}

/// Places of elements and sizes, as the operators give them; not all that is so.
bool is_never_negative(const Value* value) {
  static const Symbol kTopK("TopK"), kArgMax("ArgMax"), kArgMin("ArgMin"), kNonZero("NonZero"), kShape("Shape");
  return producer_of(value, kArgMax) || producer_of(value, kArgMin) || producer_of(value, kNonZero) ||
         producer_of(value, kShape) || (producer_of(value, kTopK) && value == value->producer->output(1));
}

/// The quotient rounded down, as exactly as PyTorch gives it: a / b may round up to a whole number.
Value* floor_quotient(Value* a, Value* b, OnnxBuilder& onnx, const std::optional<double>& divisor) {
  const DType dtype = OnnxBuilder::dtype(a);
  const bool is_positive = is_unsigned(dtype) || (divisor && *divisor > 0 && is_never_negative(a));
  if (!is_float(dtype) && is_positive) return onnx("Div", {a, b});
  if (!is_float(dtype)) {  // a - m may not fit: the quotient towards zero is one too large where signs differ
    Value* zero = onnx.number(dtype, 0);
    Value* is_whole = onnx("Equal", {onnx("Mod", {a, b}), zero});
    Value* has_sign = divisor && *divisor > 0   ? onnx("Less", {a, zero})
                      : divisor && *divisor < 0 ? onnx("Greater", {a, zero})
                                                : onnx("Xor", {onnx("Less", {a, zero}), onnx("Less", {b, zero})});
    Value* more = onnx.cast(onnx("And", {has_sign, onnx("Not", {is_whole})}), dtype);
    return onnx("Sub", {onnx("Div", {a, b}), more});
  }
  Value* m = onnx("Mod", {a, b}, {{"fmod", int64_t{1}}});
  Value* whole = onnx("Round", {onnx("Div", {onnx("Sub", {a, m}), b})});
  Value* result = onnx("Sub", {whole, onnx.cast(differs_from_floor(m, b, onnx, divisor), dtype)});
  if (divisor && *divisor != 0) return result;
  return onnx.where(onnx("Equal", {b, onnx.number(dtype, 0)}), onnx("Div", {a, b}), result);
}

Values raise_floor_divide(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return floor_quotient(n.input_as("self", dtype), n.input_as("other", dtype), onnx, find_number(n, "other"));
}

Values raise_float_power(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_complex(n.output_dtype())) n.cannot("powers of complex numbers");
  return onnx("Pow", {n.input_as("self", n.output_dtype()), n.input_as("exponent", n.output_dtype())});
}

/// The larger or smaller, and the other one where one is NaN.
Values raise_without_nan(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  const bool is_max = n.node().op.view() == "fmax";
  if (dtype == DType::Bool) return onnx(is_max ? "Or" : "And", {a, b});
  Value* both = onnx(is_max ? "Max" : "Min", {a, b});
  if (!is_float(dtype)) return both;
  return onnx.where(onnx("IsNaN", {a}), b, onnx.where(onnx("IsNaN", {b}), a, both));
}

Values raise_atan2(const AtenNode& n, OnnxBuilder& onnx) {
  return arc_tangent(n.input_as("self", n.output_dtype()), n.input_as("other", n.output_dtype()), onnx);
}

Values raise_copysign(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* sign = n.input_as("other", dtype);
  return signed_as(onnx("Abs", {n.input_as("self", dtype)}), sign, onnx);
}

/// Squares of float32 do not overflow in float64. Infinity beside NaN is infinity.
Values raise_hypot(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype(), wide = info(dtype).bits < 32 ? DType::Float32 : DType::Float64;
  Value *x = onnx.cast(n.input_as("self", dtype), wide), *y = onnx.cast(n.input_as("other", dtype), wide);
  Value* root = onnx("Sqrt", {onnx("Add", {onnx("Mul", {x, x}), onnx("Mul", {y, y})})});
  Value* is_infinite = onnx("Or", {onnx("IsInf", {x}), onnx("IsInf", {y})});
  const double infinity = std::numeric_limits<double>::infinity();
  return onnx.cast(onnx.where(is_infinite, onnx.number(wide, infinity), root), dtype);
}

Values raise_ldexp(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype(), other = power_dtype(n.dtype("other"), dtype);
  Value* power = onnx("Pow", {onnx.number(other, 2), n.input_as("other", other)});
  return onnx("Mul", {n.input_as("self", dtype), onnx.cast(power, dtype)});
}

Values raise_heaviside(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* x = n.input("self");
  Value* zero = onnx.number(n.dtype("self"), 0);
  Value* step = onnx.cast(n.dtype("self") == DType::Bool ? x : onnx("Greater", {x, zero}), dtype);
  return onnx.where(onnx("Equal", {x, zero}), n.input_as("values", dtype), step);
}

Values raise_lerp(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (is_complex(dtype)) n.cannot("lerp of complex numbers");
  Value *start = n.input_as("self", dtype), *end = n.input_as("end", dtype), *weight = n.input_as("weight", dtype);
  Value* way = onnx("Sub", {end, start});
  const auto number = find_number(n, "weight");
  // from the nearer end, as PyTorch does: it is met exactly
  const auto from_start = [&] { return onnx("Add", {start, onnx("Mul", {weight, way})}); };
  const auto from_end = [&] {
    return onnx("Sub", {end, onnx("Mul", {way, onnx("Sub", {onnx.number(dtype, 1), weight})})});
  };
  if (number) return std::abs(*number) < 0.5 ? from_start() : from_end();
  Value* is_near = onnx("Less", {onnx("Abs", {weight}), onnx.number(dtype, 0.5)});
  return onnx.where(is_near, from_start(), from_end());
}

/// self + value * tensor1 * tensor2, or / tensor2.
template <FixedText Op>
Values raise_addc(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (is_complex(dtype)) n.cannot("complex numbers");
  Value* term = onnx(Op.value, {n.input_as("tensor1", dtype), n.input_as("tensor2", dtype)});
  if (n.f("value") != 1) term = onnx("Mul", {term, n.input_as("value", dtype)});
  return onnx("Add", {n.input_as("self", dtype), term});
}

/// x * log(y), and 0 where x is 0, unless y is NaN.
template <bool PlusOne>
Values raise_xlogy(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *x = n.input_as("self", dtype), *y = n.input_as("other", dtype);
  Value* product = onnx("Mul", {x, PlusOne ? log1p(y, onnx) : onnx("Log", {y})});
  Value* is_zero = onnx("And", {onnx("Equal", {x, onnx.number(dtype, 0)}), onnx("Not", {onnx("IsNaN", {y})})});
  return onnx.where(is_zero, onnx.number(dtype, 0), product);
}

/// log(exp(a) + exp(b)), in base 2 as well.
Values raise_logaddexp(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const bool is_binary = n.node().op.view() == "logaddexp2";
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  Value* distance = onnx("Neg", {onnx("Abs", {onnx("Sub", {a, b})})});
  if (is_binary) distance = onnx("Mul", {distance, onnx.number(dtype, std::log(2.0))});
  Value* more = softplus(distance, onnx);
  if (is_binary) more = onnx("Mul", {more, onnx.number(dtype, 1 / std::log(2.0))});
  // inf - inf is NaN; and where both are equal the distance is 0
  Value* equal = onnx("Add", {a, onnx.number(dtype, is_binary ? 1 : std::log(2.0))});
  return onnx.where(onnx("Equal", {a, b}), equal, onnx("Add", {onnx("Max", {a, b}), more}));
}

/// The next number of float32 in float64: a step of 1.25 half units in the last place rounds to it, and to nothing
/// else, at powers of two as well.
Values raise_nextafter(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (dtype != DType::Float32) n.cannot("nextafter of other types than float32");
  const auto wide = [&](std::string_view name) { return onnx.cast(n.input_as(name, dtype), DType::Float64); };
  const auto number = [&](double value) { return onnx.number(DType::Float64, value); };
  Value *x = wide("self"), *y = wide("other");
  Value* finite = onnx("Clip", {x, number(-std::ldexp(1, 128)), number(std::ldexp(1, 128))});
  Value* step = onnx("Max", {onnx("Mul", {onnx("Abs", {finite}), number(1.25 * std::ldexp(1, -24))}),
                             number(0.75 * std::ldexp(1, -149))});
  Value* down = onnx("Sub", {finite, step});
  Value* moved = onnx.where(onnx("Less", {x, y}), onnx("Add", {finite, step}), down);
  Value* is_equal = onnx("Equal", {x, y});
  Value* is_nan = onnx("IsNaN", {y});
  return onnx.cast(onnx.where(onnx("Or", {is_equal, is_nan}), y, moved), dtype);
}

constexpr AtenOp kAtenBinaryAten[] = {
    {.sig = "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.addcdiv",
     .raise = raise_addc<"Div">},
    {.sig = "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.addcmul",
     .raise = raise_addc<"Mul">},
    {.sig = "aten::atan2(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.atan2",
     .raise = raise_atan2},
    {.sig = "aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.copysign",
     .raise = raise_copysign},
    {.sig = "aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.copysign",
     .raise = raise_copysign},
    {.sig = "aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
     .elementwise = Elementwise::Doubles,
     .python = "torch.float_power",
     .raise = raise_float_power},
    {.sig = "aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
     .elementwise = Elementwise::Doubles,
     .python = "torch.float_power",
     .raise = raise_float_power},
    {.sig = "aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
     .elementwise = Elementwise::Doubles,
     .python = "torch.float_power",
     .raise = raise_float_power},
    {.sig = "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.floor_divide",
     .raise = raise_floor_divide},
    {.sig = "aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.floor_divide",
     .raise = raise_floor_divide},
    {.sig = "aten::fmax(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.fmax",
     .raise = raise_without_nan},
    {.sig = "aten::fmin(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.fmin",
     .raise = raise_without_nan},
    {.sig = "aten::heaviside(Tensor self, Tensor values) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.heaviside",
     .raise = raise_heaviside},
    {.sig = "aten::hypot(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.hypot",
     .raise = raise_hypot},
    {.sig = "aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.ldexp",
     .raise = raise_ldexp},
    {.sig = "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.lerp",
     .raise = raise_lerp},
    {.sig = "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.lerp",
     .raise = raise_lerp},
    {.sig = "aten::logaddexp(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.logaddexp",
     .raise = raise_logaddexp},
    {.sig = "aten::logaddexp2(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.logaddexp2",
     .raise = raise_logaddexp},
    {.sig = "aten::nextafter(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.nextafter",
     .raise = raise_nextafter},
    {.sig = "aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.remainder",
     .raise = raise_remainder},
    {.sig = "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.rsub",
     .raise = raise_rsub},
    {.sig = "aten::special_xlog1py(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.xlog1py",
     .raise = raise_xlogy<true>},
    {.sig = "aten::special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.xlog1py",
     .raise = raise_xlogy<true>},
    {.sig = "aten::special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.xlog1py",
     .raise = raise_xlogy<true>},
    {.sig = "aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.xlogy",
     .raise = raise_xlogy<false>},
    {.sig = "aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.xlogy",
     .raise = raise_xlogy<false>},
    {.sig = "aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.xlogy",
     .raise = raise_xlogy<false>},
};

}  // namespace

Values raise_add(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (is_complex(dtype)) return raise_complex_binary(n, onnx);
  if (dtype == DType::Bool) {
    Value* other = n.input_as("other", DType::Bool);
    return n.f("alpha") == 0 ? n.input_as("self", DType::Bool) : onnx("Or", {n.input_as("self", DType::Bool), other});
  }
  return onnx("Add", {n.input_as("self", dtype), scaled_other(n, onnx, "other", dtype)});
}

Values raise_sub(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (is_complex(dtype)) return raise_complex_binary(n, onnx);
  return onnx("Sub", {n.input_as("self", dtype), scaled_other(n, onnx, "other", dtype)});
}

Values raise_rsub(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (is_complex(dtype)) return raise_complex_binary(n, onnx);
  return onnx("Sub", {n.input_as("other", dtype), scaled_other(n, onnx, "self", dtype)});
}

Values raise_mul(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (is_complex(dtype)) return raise_complex_binary(n, onnx);
  return onnx(dtype == DType::Bool ? "And" : "Mul", {n.input_as("self", dtype), n.input_as("other", dtype)});
}

Values raise_div(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (is_complex(dtype)) return raise_complex_binary(n, onnx);
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  const bool has_mode = n.node().overload.view().ends_with("_mode");
  const std::string mode = has_mode ? n.find_s("rounding_mode").value_or("") : "";
  if (mode == "floor") return floor_quotient(a, b, onnx, find_number(n, "other"));
  Value* quotient = onnx("Div", {a, b});
  return mode == "trunc" && is_float(dtype) ? truncated(quotient, onnx) : quotient;
}

Values raise_remainder(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  if (!is_float(dtype)) return onnx("Mod", {a, b});
  Value* m = onnx("Mod", {a, b}, {{"fmod", int64_t{1}}});
  return onnx.where(differs_from_floor(m, b, onnx, find_number(n, "other")), onnx("Add", {m, b}), m);
}

Values raise_fmod(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx("Mod", {n.input_as("self", dtype), n.input_as("other", dtype)}, {{"fmod", int64_t{1}}});
}

Values raise_pow(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const auto exponent = n.is_tensor("exponent") ? std::nullopt : find_number(n, "exponent");
  Value* x = n.input_as("self", dtype);
  if (exponent && dtype != DType::Bool && n.is_tensor("self")) {
    if (*exponent == 1) return x;
    if (*exponent == 2) return onnx("Mul", {x, x});
    if (*exponent == 3) return onnx("Mul", {onnx("Mul", {x, x}), x});
    if (*exponent == 0.5) return onnx("Sqrt", {x});
    if (*exponent == -0.5) return onnx("Reciprocal", {onnx("Sqrt", {x})});
    if (*exponent == -1 && is_float(dtype)) return onnx("Reciprocal", {x});
  }
  return onnx("Pow", {x, n.input_as("exponent", dtype)});
}

Values raise_maximum(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx(dtype == DType::Bool ? "Or" : "Max", {n.input_as("self", dtype), n.input_as("other", dtype)});
}

Values raise_minimum(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx(dtype == DType::Bool ? "And" : "Min", {n.input_as("self", dtype), n.input_as("other", dtype)});
}

extern const OpFamily kAtenBinaryOps;
constinit const OpFamily kAtenBinaryOps{"aten_binary", {}, kAtenBinaryAten};

}  // namespace tonnx
