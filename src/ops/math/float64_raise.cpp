// float64_raise.cpp - functions that ONNX Runtime has for float32 only, of float64.
#include <array>
#include <cmath>
#include <numbers>

#include "ops/frame/wide_number.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

constexpr double kPi = std::numbers::pi;

Wide log_of_one_plus(const Wide& x) { return {x.onnx(), log1p(x.value(), x.onnx())}; }

Wide tangent(const Wide& x) { return sin(x) / cos(x); }

/// By its series near 0, where the difference would lose digits.
Wide sinh(const Wide& x) {
  constexpr double kSeries[] = {1, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800};
  return select(abs(x) < 0.5, x * polynomial(square(x), kSeries), (exp(x) - exp(-x)) * 0.5);
}

Wide cosh(const Wide& x) { return (exp(x) + exp(-x)) * 0.5; }

/// Beyond 1e8 the square of x adds nothing, and would overflow.
Wide asinh(const Wide& x) {
  const Wide a = abs(x), squared = square(a);
  const Wide near = log_of_one_plus(a + squared / (1 + sqrt(squared + 1)));
  return sign(x) * select(a > 1e8, log(a) + std::numbers::ln2, near);
}

Wide acosh(const Wide& x) {
  const Wide more = x - 1;
  const Wide near = log_of_one_plus(more + sqrt(more * (x + 1)));
  return select(x > 1e8, log(x) + std::numbers::ln2, near);
}

Wide atanh(const Wide& x) { return log_of_one_plus(2 * x / (1 - x)) * 0.5; }

Wide asin(const Wide& x) { return arc_tangent(x / sqrt((1 - x) * (1 + x))); }
Wide acos(const Wide& x) { return 2 * arc_tangent(sqrt((1 - x) / (1 + x))); }

}  // namespace

/// By its series for at most tan(pi / 8), to which larger ones are turned.
Wide arc_tangent(const Wide& x) {
  static const auto series = [] {
    std::array<double, 21> c{};
    for (size_t i = 0; i < c.size(); ++i) c[i] = (i % 2 == 0 ? 1.0 : -1.0) / static_cast<double>(2 * i + 1);
    return c;
  }();
  const Wide a = abs(x);
  Value* is_steep = a > 1.0;
  const Wide t = select(is_steep, 1 / a, a);
  Value* is_turned = t > std::sqrt(2.0) - 1;
  const Wide u = select(is_turned, (t - 1) / (t + 1), t);
  const Wide angle = u * polynomial(square(u), series) + select(is_turned, u.number(kPi / 4), 0.0);
  return sign(x) * select(is_steep, kPi / 2 - angle, angle);
}

Value* apply_unary(std::string_view op, Value* x, OnnxBuilder& onnx) {
  if (OnnxBuilder::dtype(x) != DType::Float64) return onnx(op, {x});
  struct Row {
    std::string_view op;
    Wide (*function)(const Wide&);
  };
  constexpr Row kRows[] = {{"Acos", acos},   {"Acosh", acosh}, {"Asin", asin}, {"Asinh", asinh}, {"Atan", arc_tangent},
                           {"Atanh", atanh}, {"Cosh", cosh},   {"Erf", erf},   {"Sinh", sinh},   {"Tan", tangent}};
  for (const Row& row : kRows) {
    if (row.op == op) return row.function(Wide(onnx, x)).value();
  }
  return onnx(op, {x});
}

}  // namespace tonnx
