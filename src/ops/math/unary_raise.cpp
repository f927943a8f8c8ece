// unary_raise.cpp - PyTorch's arithmetic and rounding of one tensor as ONNX.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

/// Bool of the shape of x, all the same.
Value* flags_like(Value* x, OnnxBuilder& onnx, bool value) { return onnx.expand(onnx.flag(value), onnx.shape(x)); }

Value* less_than_zero(Value* x, OnnxBuilder& onnx) { return onnx("Less", {x, onnx.number(OnnxBuilder::dtype(x), 0)}); }

/// The sign bit, that of -0 as well.
Value* sign_bit(Value* x, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(x);
  if (!is_float(dtype)) return less_than_zero(x, onnx);
  Value* is_zero = onnx("Equal", {x, onnx.number(dtype, 0)});
  return less_than_zero(onnx.where(is_zero, onnx("Reciprocal", {x}), x), onnx);
}

Values raise_scaled(const AtenNode& n, OnnxBuilder& onnx, double factor) {
  const DType dtype = n.output_dtype();
  return onnx("Mul", {n.input_as("self", dtype), onnx.number(dtype, factor)});
}

Values raise_deg2rad(const AtenNode& n, OnnxBuilder& onnx) { return raise_scaled(n, onnx, std::numbers::pi / 180); }
Values raise_rad2deg(const AtenNode& n, OnnxBuilder& onnx) { return raise_scaled(n, onnx, 180 / std::numbers::pi); }

Values raise_frac(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  return onnx("Sub", {x, truncated(x, onnx)});
}

Values raise_signbit(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  const DType dtype = n.dtype("self");
  if (dtype == DType::Bool || is_unsigned(dtype)) return flags_like(x, onnx, false);
  return sign_bit(x, onnx);
}

/// exp(x) - 1 by tanh near zero, where the difference would lose digits.
Values raise_expm1(const AtenNode& n, OnnxBuilder& onnx) { return expm1(n.input_as("self", n.output_dtype()), onnx); }

Values raise_log1p(const AtenNode& n, OnnxBuilder& onnx) { return log1p(n.input_as("self", n.output_dtype()), onnx); }

Values raise_log2(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx("Mul", {onnx("Log", {n.input_as("self", dtype)}), onnx.number(dtype, std::numbers::log2e)});
}

Values raise_isfinite(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  const DType dtype = n.dtype("self");
  if (!is_float(dtype)) return flags_like(x, onnx, true);
  return onnx("Less", {onnx("Abs", {x}), onnx.number(dtype, std::numeric_limits<double>::infinity())});
}

Values raise_isreal(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_complex(n.dtype("self"))) {
    Value* imaginary = onnx.gather(n.input("self"), onnx.integer(DType::Int64, 1), n.rank("self"));
    return onnx("Equal", {imaginary, onnx.number(OnnxBuilder::dtype(imaginary), 0)});
  }
  return flags_like(n.input("self"), onnx, true);
}

Values raise_angle(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_complex(n.dtype("self"))) {
    Value* x = n.input("self");
    const int64_t last = n.rank("self");
    return arc_tangent(onnx.gather(x, onnx.integer(DType::Int64, 1), last),
                       onnx.gather(x, onnx.integer(DType::Int64, 0), last), onnx);
  }
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("self", dtype);
  if (is_unsigned(n.dtype("self")) || n.dtype("self") == DType::Bool)
    return onnx.expand(onnx.number(dtype, 0), onnx.shape(x));
  Value* angle = onnx.where(less_than_zero(x, onnx), onnx.number(dtype, std::numbers::pi), onnx.number(dtype, 0));
  if (!is_float(n.dtype("self"))) return angle;
  return onnx.where(onnx("IsNaN", {x}), x, angle);
}

Values raise_sinc(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("self", dtype);
  Value* angle = onnx("Mul", {x, onnx.number(dtype, std::numbers::pi)});
  Value* ratio = onnx("Div", {onnx("Sin", {angle}), angle});
  return onnx.where(onnx("Equal", {x, onnx.number(dtype, 0)}), onnx.number(dtype, 1), ratio);
}

Values raise_logit(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("self", dtype);
  if (const auto eps = n.find_f("eps")) x = onnx("Clip", {x, onnx.number(dtype, *eps), onnx.number(dtype, 1 - *eps)});
  return onnx("Log", {onnx("Div", {x, onnx("Sub", {onnx.number(dtype, 1), x})})});
}

Values raise_conj(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  if (!is_complex(n.dtype("self"))) return x;
  return onnx("Mul", {x, onnx.numbers(OnnxBuilder::dtype(x), {2}, {1, -1})});
}

Values raise_round_decimals(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const int64_t decimals = n.i("decimals");
  Value* x = n.input("self");
  if (!is_float(dtype)) {
    if (decimals != 0) n.cannot("rounding integers to decimals");
    return x;
  }
  if (decimals == 0) return onnx("Round", {x});
  Value* scale = onnx.number(dtype, std::pow(10.0, static_cast<double>(std::abs(decimals))));
  // PyTorch multiplies and divides by the same power, and never by its reciprocal
  const char* there = decimals > 0 ? "Mul" : "Div";
  const char* back = decimals > 0 ? "Div" : "Mul";
  return onnx(back, {onnx("Round", {onnx(there, {x, scale})}), scale});
}

constexpr AtenOp kAtenUnaryAten[] = {
    {.sig = "aten::angle(Tensor self) -> Tensor", .types = types_angle, .python = "torch.angle", .raise = raise_angle},
    {.sig = "aten::conj_physical(Tensor self) -> Tensor",
     .types = types_as_self,
     .python = "torch.conj_physical",
     .raise = raise_conj},
    {.sig = "aten::conj(Tensor(a) self) -> Tensor(a)",
     .types = types_as_self,
     .view = ViewRule::Real,
     .python = "torch.conj",
     .raise = raise_conj},
    {.sig = "aten::_conj(Tensor(a) self) -> Tensor(a)",
     .types = types_as_self,
     .view = ViewRule::Opaque,
     .python = "torch.conj",
     .raise = raise_conj},
    {.sig = "aten::resolve_conj(Tensor(a) self) -> Tensor(a)",
     .types = types_as_self,
     .view = ViewRule::Real,
     .python = "torch.resolve_conj",
     .raise = raise_nothing},
    {.sig = "aten::resolve_neg(Tensor(a) self) -> Tensor(a)",
     .types = types_as_self,
     .view = ViewRule::Real,
     .python = "torch.resolve_neg",
     .raise = raise_nothing},
    {.sig = "aten::deg2rad(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.deg2rad",
     .raise = raise_deg2rad},
    {.sig = "aten::rad2deg(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.rad2deg",
     .raise = raise_rad2deg},
    {.sig = "aten::expm1(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.expm1",
     .raise = raise_expm1,
     .raise_complex = raise_complex_function},
    {.sig = "aten::frac(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.frac",
     .raise = raise_frac},
    {.sig = "aten::isfinite(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.isfinite",
     .raise = raise_isfinite,
     .raise_complex = raise_both_parts},
    {.sig = "aten::isreal(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.isreal",
     .raise = raise_isreal},
    {.sig = "aten::log1p(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.log1p",
     .raise = raise_log1p,
     .raise_complex = raise_complex_function},
    {.sig = "aten::log2(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.log2",
     .raise = raise_log2,
     .raise_complex = raise_complex_function},
    {.sig = "aten::logit(Tensor self, float? eps=None) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.logit",
     .raise = raise_logit},
    {.sig = "aten::positive(Tensor(a) self) -> Tensor(a)",
     .types = types_as_self,
     .view = ViewRule::Same,
     .python = "torch.positive",
     .raise = raise_nothing},
    {.sig = "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.round",
     .raise = raise_round_decimals},
    {.sig = "aten::sgn(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.sgn",
     .raise = raise_sign,
     .raise_complex = raise_complex_function},
    {.sig = "aten::signbit(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.signbit",
     .raise = raise_signbit},
    {.sig = "aten::sinc(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.sinc",
     .raise = raise_sinc},
};

}  // namespace

Value* truncated(Value* x, OnnxBuilder& onnx) {
  return onnx("Mul", {onnx("Sign", {x}), onnx("Floor", {onnx("Abs", {x})})});
}

Value* expm1(Value* x, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(x);
  Value* one = onnx.number(dtype, 1);
  Value* t = onnx("Tanh", {onnx("Mul", {x, onnx.number(dtype, 0.5)})});
  Value* near = onnx("Div", {onnx("Add", {t, t}), onnx("Sub", {one, t})});
  Value* far = onnx("Sub", {onnx("Exp", {x}), one});
  return onnx.where(onnx("Less", {onnx("Abs", {x}), onnx.number(dtype, 0.25)}), near, far);
}

Value* log1p(Value* x, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(x);
  // with u = 1 + x rounded, log(u) * x / (u - 1) makes good what rounding took
  Value* u = onnx("Add", {x, onnx.number(dtype, 1)});
  Value* lost = onnx("Sub", {u, onnx.number(dtype, 1)});
  Value* log = onnx("Log", {u});
  Value* near = onnx("Mul", {log, onnx("Div", {x, lost})});
  Value* is_near = onnx("Less", {onnx("Abs", {x}), onnx.number(dtype, 0.5)});
  Value* is_tiny = onnx("Equal", {lost, onnx.number(dtype, 0)});
  return onnx.where(is_near, onnx.where(is_tiny, x, near), log);
}

Value* softplus(Value* x, OnnxBuilder& onnx) {
  if (OnnxBuilder::dtype(x) != DType::Float64) return onnx("Softplus", {x});
  Value* less = onnx("Exp", {onnx("Neg", {onnx("Abs", {x})})});
  return onnx("Add", {onnx("Max", {x, onnx.number(OnnxBuilder::dtype(x), 0)}), log1p(less, onnx)});
}

Value* arc_tangent(Value* y, Value* x, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(x);
  // inf / inf would be NaN
  const double largest = dtype == DType::Float64   ? std::numeric_limits<double>::max()
                         : dtype == DType::Float16 ? 65504.0
                                                   : 3.3895313892515355e38;
  const auto finite = [&](Value* v) {
    return onnx("Clip", {v, onnx.number(dtype, -largest), onnx.number(dtype, largest)});
  };
  Value* is_origin =
      onnx("And", {onnx("Equal", {x, onnx.number(dtype, 0)}), onnx("Equal", {y, onnx.number(dtype, 0)})});
  Value* width = onnx.where(is_origin, onnx.number(dtype, 1), onnx("Abs", {finite(x)}));
  Value* angle = apply_unary("Atan", onnx("Div", {finite(y), width}), onnx);
  const auto half_turn = [&](double sign) { return onnx.number(dtype, sign * std::numbers::pi); };
  Value* pi = onnx.where(sign_bit(y, onnx), half_turn(-1), half_turn(1));
  return onnx.where(sign_bit(x, onnx), onnx("Sub", {pi, angle}), angle);
}

Values raise_math(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  return apply_unary(op, n.input_as("self", n.output_dtype()), onnx);
}

Value* signed_as(Value* magnitude, Value* sign, OnnxBuilder& onnx) {
  return onnx.where(sign_bit(sign, onnx), onnx("Neg", {magnitude}), magnitude);
}

Values raise_neg(const AtenNode& n, OnnxBuilder& onnx) { return onnx("Neg", {n.input("self")}); }

Values raise_abs(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_complex(n.dtype("self"))) return onnx.reduce("ReduceL2", n.input("self"), {n.rank("self")}, false);
  if (n.dtype("self") == DType::Bool) return n.input("self");
  return onnx("Abs", {n.input("self")});
}

Values raise_rounded(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  return is_float(n.output_dtype()) ? onnx(op, {n.input("self")}) : n.input("self");
}

Values raise_trunc(const AtenNode& n, OnnxBuilder& onnx) {
  return is_float(n.output_dtype()) ? truncated(n.input("self"), onnx) : n.input("self");
}

Values raise_sign(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_complex(n.dtype("self"))) n.cannot("sgn of complex numbers");
  Value* x = n.input("self");
  if (n.dtype("self") == DType::Bool) return x;
  Value* y = onnx("Sign", {x});
  // PyTorch says 0 of NaN, and ONNX Runtime NaN
  return is_float(n.dtype("self")) ? onnx.where(onnx("IsNaN", {x}), onnx.number(n.dtype("self"), 0), y) : y;
}

Values raise_reciprocal(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_complex(n.dtype("self"))) return raise_complex_reciprocal(n, onnx);
  return raise_elementwise(n, onnx, "Reciprocal");
}

Values raise_rsqrt(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx("Reciprocal", {onnx("Sqrt", {n.input_as("self", n.output_dtype())})});
}

Values raise_square(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_complex(n.dtype("self"))) return raise_complex_square(n, onnx);
  Value* x = n.input("self");
  return n.dtype("self") == DType::Bool ? onnx.cast(x, n.output_dtype()) : onnx("Mul", {x, x});
}

Values raise_exp2(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx("Pow", {onnx.number(dtype, 2), n.input_as("self", dtype)});
}

Values raise_log10(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx("Mul", {onnx("Log", {n.input_as("self", dtype)}), onnx.number(dtype, std::numbers::log10e)});
}

Values raise_logical_not(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx("Not", {n.input_as("self", DType::Bool)});
}

Values raise_bitwise_not(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx(n.dtype("self") == DType::Bool ? "Not" : "BitwiseNot", {n.input("self")});
}

Values raise_is_float_value(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string_view name = n.node().op.view();
  Value* x = n.input("self");
  if (is_complex(n.dtype("self"))) n.cannot("{} of complex numbers", name);
  if (!is_float(n.dtype("self"))) return flags_like(x, onnx, false);
  if (name == "isnan") return onnx("IsNaN", {x});
  // IsInf took only float32 and float64 at first
  if (onnx.target_opset() < 20 && n.dtype("self") != DType::Float64) x = onnx.cast(x, DType::Float32);
  if (name == "isposinf") return onnx("IsInf", {x}, {{"detect_negative", int64_t{0}}});
  if (name == "isneginf") return onnx("IsInf", {x}, {{"detect_positive", int64_t{0}}});
  return onnx("IsInf", {x});
}

extern const OpFamily kAtenUnaryOps;
constinit const OpFamily kAtenUnaryOps{"aten_unary", {}, kAtenUnaryAten};

}  // namespace tonnx
