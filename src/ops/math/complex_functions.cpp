// complex_functions.cpp - functions and powers of complex numbers.
#include <cmath>
#include <numbers>

#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

/// Functions of pairs, in terms of functions of their parts.
class ComplexMath {
 public:
  ComplexMath(OnnxBuilder& onnx, DType dtype) : onnx_(onnx), dtype_(dtype) {}

  Value* real(Value* z) { return part_of(onnx_, z, 0); }
  Value* imaginary(Value* z) { return part_of(onnx_, z, 1); }
  Value* pair(Value* real, Value* imaginary) { return pair_of_parts(onnx_, real, imaginary); }
  Value* number(double real) { return onnx_.number(dtype_, real); }
  Value* complex_number(double real) { return onnx_.numbers(dtype_, {2}, {real, 0}); }

  Value* length(Value* z) { return onnx_.reduce("ReduceL2", z, {onnx_.rank(z) - 1}, false); }
  Value* angle(Value* z) { return arc_tangent(imaginary(z), real(z), onnx_); }

  Value* exp(Value* z) { return polar_pair(onnx_("Exp", {real(z)}), imaginary(z), onnx_); }
  Value* log(Value* z) { return pair(onnx_("Log", {length(z)}), angle(z)); }
  Value* scaled(Value* z, double factor) { return onnx_("Mul", {z, number(factor)}); }
  Value* shifted(Value* z, double by) { return onnx_("Add", {z, complex_number(by)}); }
  Value* times_i(Value* z, double sign) { return pair(scaled(imaginary(z), -sign), scaled(real(z), sign)); }

  /// z to the power of a real number.
  Value* power(Value* z, Value* exponent) {
    return polar_pair(onnx_("Pow", {length(z), exponent}), onnx_("Mul", {angle(z), exponent}), onnx_);
  }
  /// By products, which are exact where polar forms are not.
  Value* power(Value* z, int64_t exponent) {
    if (exponent < 0) return complex_quotient(complex_number(1), power(z, -exponent), onnx_);
    if (exponent == 1) return z;
    Value* half = power(z, exponent / 2);
    Value* square = complex_product(half, half, onnx_);
    return exponent % 2 == 0 ? square : complex_product(square, z, onnx_);
  }

  Value* sinh(Value* z) {
    Value *a = real(z), *b = imaginary(z);
    return pair(onnx_("Mul", {apply_unary("Sinh", a, onnx_), onnx_("Cos", {b})}),
                onnx_("Mul", {apply_unary("Cosh", a, onnx_), onnx_("Sin", {b})}));
  }
  Value* cosh(Value* z) {
    Value *a = real(z), *b = imaginary(z);
    return pair(onnx_("Mul", {apply_unary("Cosh", a, onnx_), onnx_("Cos", {b})}),
                onnx_("Mul", {apply_unary("Sinh", a, onnx_), onnx_("Sin", {b})}));
  }
  /// (sinh 2a + i sin 2b) / (cosh 2a + cos 2b)
  Value* tanh(Value* z) {
    constexpr double kFlat = 20;  // it does not change beyond, and cosh would be infinite
    Value* a = scaled(onnx_("Clip", {real(z), number(-kFlat), number(kFlat)}), 2);
    Value* b = scaled(imaginary(z), 2);
    Value* below = onnx_("Add", {apply_unary("Cosh", a, onnx_), onnx_("Cos", {b})});
    return pair(onnx_("Div", {apply_unary("Sinh", a, onnx_), below}), onnx_("Div", {onnx_("Sin", {b}), below}));
  }
  Value* sgn(Value* z) {
    Value* size = onnx_.unsqueeze(length(z), {onnx_.rank(z) - 1});
    Value* is_zero = onnx_("Equal", {size, number(0)});
    return onnx_("Div", {z, onnx_.where(is_zero, number(1), size)});
  }

  Value* function(std::string_view name, Value* z) {
    if (name == "exp") return exp(z);
    if (name == "exp2") return exp(scaled(z, std::numbers::ln2));
    if (name == "expm1") return shifted(exp(z), -1);
    if (name == "log") return log(z);
    if (name == "log2") return scaled(log(z), 1 / std::numbers::ln2);
    if (name == "log10") return scaled(log(z), 1 / std::numbers::ln10);
    if (name == "log1p") return log(shifted(z, 1));
    if (name == "sqrt") return power(z, number(0.5));
    if (name == "rsqrt") return power(z, number(-0.5));
    if (name == "sinh") return sinh(z);
    if (name == "cosh") return cosh(z);
    if (name == "tanh") return tanh(z);
    if (name == "sin") return times_i(sinh(times_i(z, 1)), -1);
    if (name == "cos") return cosh(times_i(z, 1));
    if (name == "tan") return times_i(tanh(times_i(z, 1)), -1);
    if (name == "sigmoid") return scaled(shifted(tanh(scaled(z, 0.5)), 1), 0.5);
    return name == "sgn" ? sgn(z) : nullptr;
  }

 private:
  OnnxBuilder& onnx_;
  DType dtype_;
};

/// A whole number that few products make.
std::optional<int64_t> small_exponent(const AtenNode& n) {
  constexpr double kMost = 64;
  if (n.is_tensor("exponent") || is_complex(n.dtype("exponent"))) return std::nullopt;
  const double exponent = n.f("exponent");
  if (exponent == 0 || exponent != std::floor(exponent) || std::abs(exponent) > kMost) return std::nullopt;
  return static_cast<int64_t>(exponent);
}

}  // namespace

Values raise_complex_function(const AtenNode& n, OnnxBuilder& onnx) {
  Value* z = n.input("self");
  Value* y = ComplexMath(onnx, OnnxBuilder::dtype(z)).function(n.node().op.view(), z);
  if (y == nullptr) n.cannot("complex numbers");
  return y;
}

Values raise_complex_power(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = part_dtype(n.output_dtype());
  ComplexMath math(onnx, dtype);
  Value* z = complex_argument(n, onnx, "self", dtype);
  if (const auto exponent = small_exponent(n)) return math.power(z, *exponent);
  if (!is_complex(n.dtype("exponent"))) return math.power(z, n.input_as("exponent", dtype));
  return math.exp(complex_product(complex_argument(n, onnx, "exponent", dtype), math.log(z), onnx));
}

}  // namespace tonnx
