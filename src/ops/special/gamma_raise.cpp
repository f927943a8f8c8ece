// gamma_raise.cpp - PyTorch's functions around the gamma and error functions as ONNX, by series and fitted polynomials.
#include <array>
#include <cmath>
#include <limits>

#include "ops/frame/wide_number.h"
#include "ops/math/rows.h"
#include "ops/special/constants.h"
#include "ops/special/rows.h"
#include "ops/special/tables.h"

namespace tonnx {

namespace {

/// How far arguments are moved up before a series in 1 / x is used.
constexpr int kShift = 8;

/// sin(pi * x), exactly 0 at whole numbers.
Wide sine_of_turns(const Wide& x) { return sin((x - round(x)) * kPi); }

/// log(gamma(x)) for x > 0 by Stirling's series.
Wide log_gamma_positive(const Wide& x) {
  constexpr double kSeries[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  Value* is_small = x < static_cast<double>(kShift);
  const Wide y = select(is_small, x + kShift, x);
  const Wide product = select(is_small, product_from(x, kShift), 1.0);
  const Wide rest = polynomial(1 / square(y), kSeries) / y;
  return (y - 0.5) * (log(y) - 1) + rest - log(product) + (0.5 * std::log(2 * kPi) - 0.5);
}

}  // namespace

Wide polynomial(const Wide& x, std::span<const double> c) {
  OnnxBuilder& onnx = x.onnx();
  const auto count = static_cast<int64_t>(c.size());
  std::vector<double> exponents;
  for (int64_t i = 0; i < count; ++i) exponents.push_back(static_cast<double>(i));
  Value* powers = onnx(
      "Pow", {onnx.unsqueeze(x.value(), {onnx.rank(x.value())}), onnx.numbers(DType::Float64, {count}, exponents)});
  Value* factors = onnx.numbers(DType::Float64, {count}, {c.begin(), c.end()});
  // not MatMul: ONNX Runtime has none for tensors without elements
  return {onnx, onnx.reduce("ReduceSum", onnx("Mul", {powers, factors}), {onnx.rank(x.value())}, false)};
}

namespace {

/// x, x + 1 ... along a new last dimension.
Value* steps_from(const Wide& x, int count) {
  OnnxBuilder& onnx = x.onnx();
  std::vector<double> steps;
  for (int k = 0; k < count; ++k) steps.push_back(k);
  return onnx("Add", {onnx.unsqueeze(x.value(), {onnx.rank(x.value())}), onnx.numbers(DType::Float64, {count}, steps)});
}

Wide reduced(const Wide& x, Value* all, const char* op) {
  OnnxBuilder& onnx = x.onnx();
  return {onnx, onnx.reduce(op, all, {onnx.rank(x.value())}, false)};
}

}  // namespace

Wide sum_of_powers(const Wide& x, int count, const Wide& s) {
  OnnxBuilder& onnx = x.onnx();
  Value* exponent =
      onnx("Neg", {onnx.rank(s.value()) == 0 ? s.value() : onnx.unsqueeze(s.value(), {onnx.rank(s.value())})});
  return reduced(x, onnx("Pow", {steps_from(x, count), exponent}), "ReduceSum");
}

Wide product_from(const Wide& x, int count) { return reduced(x, steps_from(x, count), "ReduceProd"); }

/// By reflection below 0.5; at whole numbers below 1 the sine is 0, and the result inf.
Wide log_gamma(const Wide& x) {
  Value* is_left = x < 0.5;
  const Wide value = log_gamma_positive(select(is_left, 1 - x, x));
  const Wide reflected = std::log(kPi) - log(abs(sine_of_turns(x))) - value;
  return select(abs(x) == kInf, kInf, select(is_left, reflected, value));
}

Wide digamma(const Wide& x) {
  constexpr double kSeries[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760};
  Value* is_left = x < 0.0;
  const Wide positive = select(is_left, 1 - x, x);
  const Wide y = positive + kShift;
  const Wide inverse = 1 / square(y);
  const Wide value =
      log(y) - 0.5 / y - polynomial(inverse, kSeries) * inverse - sum_of_powers(positive, kShift, x.number(1));
  const Wide turns = (x - round(x)) * kPi;
  const Wide reflected = value - kPi * cos(turns) / sin(turns);
  const Wide result = select(is_left, reflected, value);
  OnnxBuilder& onnx = x.onnx();
  Value* is_pole = onnx("And", {is_left, x == floor(x)});
  return select(is_pole, kNaN, select(x == 0.0, -kInf, select(x == kInf, kInf, result)));
}

Wide scaled_erfc(const Wide& x) {
  const Wide t = 2 / (2 + abs(x));
  const Wide positive = t * exp(polynomial(2 * t - 1, kErfcx));
  return select(x < 0.0, 2 * exp(square(x)) - positive, positive);
}

Wide erfc(const Wide& x) {
  const Wide t = 2 / (2 + abs(x));
  const Wide positive = t * exp(polynomial(2 * t - 1, kErfcx) - square(x));
  return select(abs(x) == kInf, 1 - sign(x), select(x < 0.0, 2 - positive, positive));
}

/// By its series near 0, where 1 - erfc(x) would lose digits.
Wide erf(const Wide& x) {
  static const auto series = [] {
    std::array<double, 14> c{};
    double factorial = 1;
    for (size_t i = 0; i < c.size(); ++i) {
      if (i > 0) factorial *= -static_cast<double>(i);
      c[i] = 2 / std::sqrt(kPi) / (factorial * static_cast<double>(2 * i + 1));
    }
    return c;
  }();
  return select(abs(x) < 0.75, x * polynomial(square(x), series), 1 - erfc(x));
}

namespace {

Wide entropy(const Wide& x) {
  const Wide positive = -x * log(x);
  return select(x < 0.0, -kInf, select(x == 0.0, 0.0, positive));
}

Wide ndtr(const Wide& x) { return 0.5 * erfc(-x * std::sqrt(0.5)); }

Wide log_ndtr(const Wide& x) {
  const Wide z = x * std::sqrt(0.5);
  const Wide below = log(scaled_erfc(-z) * 0.5) - square(z);
  const Wide p = erfc(abs(z)) * 0.5;
  // log(1 - p) for p below 0.16
  const Wide above{x.onnx(), log1p((-p).value(), x.onnx())};
  return select(x < -1.0, below, select(x < 0.0, log(erfc(-z) * 0.5), above));
}

/// The value below which a normal variable is with probability 0.5 + q, where |q| <= 0.425, and the tail beyond.
Wide normal_quantile(const Wide& q, const Wide& tail) {
  const Wide centre = q * polynomial(square(q) * (2 / 0.180625) - 1, kNormalCentre);
  const Wide r = sqrt(-2 * log(tail));
  const Wide s = 1 / r;
  const Wide far = r * polynomial((s - 1.0 / 38) * (2 / (0.44 - 1.0 / 38)) - 1, kNormalTail);
  return select(abs(q) <= 0.425, centre, sign(q) * far);
}

Wide ndtri(const Wide& p) {
  const Wide tail = select(p < 0.5, p, 1 - p);
  const Wide value = normal_quantile(p - 0.5, tail);
  const Wide bounded = select(p == 0.0, -kInf, select(p == 1.0, kInf, value));
  return select(p < 0.0, kNaN, select(p > 1.0, kNaN, bounded));
}

Wide erfinv(const Wide& x) {
  const Wide value = normal_quantile(x * 0.5, (1 - abs(x)) * 0.5) * std::sqrt(0.5);
  const Wide bounded = select(abs(x) == 1.0, x * kInf, value);
  return select(abs(x) > 1.0, kNaN, bounded);
}

/// The sum over k of log(gamma(x - k / 2)), k below p.
Values raise_mvlgamma(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t p = n.i("p");
  const DType dtype = n.output_dtype();
  if (p < 1 || p > 1000) n.cannot("{} dimensions", p);
  std::vector<double> halves;
  for (int64_t k = 0; k < p; ++k) halves.push_back(-0.5 * static_cast<double>(k));
  Value* x = onnx.cast(n.input_as("self", dtype), DType::Float64);
  const int64_t rank = onnx.rank(x);
  const Wide all(onnx, onnx("Add", {onnx.unsqueeze(x, {rank}), onnx.numbers(DType::Float64, {p}, halves)}));
  Value* sum = onnx.reduce("ReduceSum", log_gamma(all).value(), {rank}, false);
  const double more = static_cast<double>(p * (p - 1)) / 4 * std::log(kPi);
  return onnx.cast(onnx("Add", {sum, onnx.number(DType::Float64, more)}), dtype);
}

/// Hurwitz's zeta by Euler's and Maclaurin's formula: some terms, then an integral with corrections.
Wide zeta(const Wide& s, const Wide& q, int terms) {
  constexpr double kBernoulli[] = {1.0 / 12,
                                   -1.0 / 720,
                                   1.0 / 30240,
                                   -1.0 / 1209600,
                                   1.0 / 47900160,
                                   -691.0 / 1307674368000.0,
                                   1.0 / 74724249600.0,
                                   -3617.0 / 10670622842880000.0};
  const Wide a = q + terms;
  Wide sum = sum_of_powers(q, terms, s) + pow(a, -s) * (a / (s - 1) + 0.5);
  Wide factor = s * pow(a, -s) / a;
  const Wide inverse = 1 / square(a);
  for (int i = 0; i < 8; ++i) {
    sum = sum + factor * kBernoulli[i];
    if (i < 7) factor = factor * (s + (2 * i + 1)) * (s + (2 * i + 2)) * inverse;
  }
  return sum;
}

constexpr int kZetaTerms = 12;
/// How far below 0 the terms of zeta are added one by one.
constexpr int kLeft = 30;

Values raise_zeta(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const auto wide = [&](const char* name) { return Wide(onnx, onnx.cast(n.input_as(name, dtype), DType::Float64)); };
  Wide s = wide("self"), q = wide("other");
  const Shape& shape = n.output_shape();
  s = {onnx, onnx.expand(s.value(), shape)};
  q = {onnx, onnx.expand(q.value(), shape)};
  const Wide value = zeta(s, q, kZetaTerms), from_left = sum_of_powers(q, kLeft, s) + zeta(s, q + kLeft, kZetaTerms);
  Value* is_whole = q == floor(q);
  const Wide left = select(is_whole, kInf, select(s == floor(s), from_left, kNaN));
  const Wide result = select(q <= 0.0, left, value);
  return onnx.cast(select(s == 1.0, kInf, select(s < 1.0, kNaN, result)).value(), dtype);
}

/// (-1)^(order + 1) * order! * zeta(order + 1, x)
Values raise_polygamma(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t order = n.i("n");
  const DType dtype = n.output_dtype();
  const Wide x(onnx, onnx.cast(n.input_as("self", dtype), DType::Float64));
  if (order == 0) return onnx.cast(digamma(x).value(), dtype);
  if (order < 0 || order > 150) n.cannot("order {}", order);
  const Wide s = x.number(static_cast<double>(order + 1));
  const double factor = std::tgamma(static_cast<double>(order + 1)) * (order % 2 == 0 ? -1 : 1);
  Value* is_left = x < 0.0;
  const Wide positive = select(is_left, 1 - x, x);
  Wide value = zeta(s, positive, kZetaTerms) * factor;
  if (order == 1) {
    const Wide turns = kPi / sine_of_turns(x);
    value = select(is_left, square(turns) - value, value);
  } else {
    // terms of the same power on the left side, then the rest of the way on the right
    const Wide moved = sum_of_powers(x, kLeft, s) * factor + zeta(s, x + kLeft, kZetaTerms) * factor;
    value = select(is_left, moved, value);
    value = select(x < -static_cast<double>(kLeft), kNaN, value);
  }
  const Wide result = select(onnx("And", {x <= 0.0, x == floor(x)}), order % 2 == 0 ? -kInf : kInf, value);
  return onnx.cast(result.value(), dtype);
}

constexpr AtenOp kAtenGammaAten[] = {
    {.sig = "aten::digamma(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.digamma",
     .raise = raise_wide<digamma>},
    {.sig = "aten::erfc(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.erfc",
     .raise = raise_wide<erfc>},
    {.sig = "aten::erfinv(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.erfinv",
     .raise = raise_wide<erfinv>},
    {.sig = "aten::lgamma(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.lgamma",
     .raise = raise_wide<log_gamma>},
    {.sig = "aten::mvlgamma(Tensor self, int p) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.mvlgamma",
     .raise = raise_mvlgamma},
    {.sig = "aten::polygamma(int n, Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.polygamma",
     .raise = raise_polygamma},
    {.sig = "aten::special_entr(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.entr",
     .raise = raise_wide<entropy>},
    {.sig = "aten::special_erfcx(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.erfcx",
     .raise = raise_wide<scaled_erfc>},
    {.sig = "aten::special_log_ndtr(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.log_ndtr",
     .raise = raise_wide<log_ndtr>},
    {.sig = "aten::special_ndtr(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.ndtr",
     .raise = raise_wide<ndtr>},
    {.sig = "aten::special_zeta(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.zeta",
     .raise = raise_zeta},
    {.sig = "aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.zeta",
     .raise = raise_zeta},
    {.sig = "aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.zeta",
     .raise = raise_zeta},
};

}  // namespace

Values raise_ndtri(const AtenNode& n, OnnxBuilder& onnx) { return raise_wide<ndtri>(n, onnx); }

extern const OpFamily kAtenGammaOps;
constinit const OpFamily kAtenGammaOps{"aten_gamma", {}, kAtenGammaAten};

}  // namespace tonnx
