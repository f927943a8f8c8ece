// unary_eval.cpp - evaluation of operators of one tensor, element by element.
#include <cmath>

#include "ops/frame/eval_map.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

using FloatFn = std::function<double(double)>;
using IntFn = std::function<int64_t(int64_t)>;

/// Floats in double, rounded once; integers in 64 bits, whose sign the function knows of.
Results each(const NodeView& n, const FloatFn& on_floats, const IntFn& on_ints = nullptr) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!contains(kComputed, x.dtype)) return {};
  if (is_float(x.dtype)) return on_floats ? Results(mapped<double>(x, x.dtype, on_floats)) : Results();
  return on_ints ? Results(mapped<int64_t>(x, x.dtype, on_ints)) : Results();
}

bool is_unsigned_input(const NodeView& n) { return is_unsigned(n.node().input(0)->constant->dtype); }

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double soft_plus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace

Results eval_abs(const NodeView& n) {
  if (is_unsigned_input(n)) return n.node().input(0)->constant;
  return each(n, FloatFn(static_cast<double (*)(double)>(std::fabs)),
              [](int64_t x) { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; });
}
Results eval_neg(const NodeView& n) {
  return each(
      n, [](double x) { return -x; }, [](int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); });
}
Results eval_sqrt(const NodeView& n) {
  return each(n, [](double x) { return std::sqrt(x); });
}
Results eval_exp(const NodeView& n) {
  return each(n, [](double x) { return std::exp(x); });
}
Results eval_log(const NodeView& n) {
  return each(n, [](double x) { return std::log(x); });
}
Results eval_reciprocal(const NodeView& n) {
  return each(n, [](double x) { return 1.0 / x; });
}
Results eval_floor(const NodeView& n) {
  return each(n, [](double x) { return std::floor(x); });
}
Results eval_ceil(const NodeView& n) {
  return each(n, [](double x) { return std::ceil(x); });
}
Results eval_round(const NodeView& n) {
  return each(n, [](double x) { return std::nearbyint(x); });
}
Results eval_sin(const NodeView& n) {
  return each(n, [](double x) { return std::sin(x); });
}
Results eval_cos(const NodeView& n) {
  return each(n, [](double x) { return std::cos(x); });
}
Results eval_tan(const NodeView& n) {
  return each(n, [](double x) { return std::tan(x); });
}
Results eval_asin(const NodeView& n) {
  return each(n, [](double x) { return std::asin(x); });
}
Results eval_acos(const NodeView& n) {
  return each(n, [](double x) { return std::acos(x); });
}
Results eval_atan(const NodeView& n) {
  return each(n, [](double x) { return std::atan(x); });
}
Results eval_sinh(const NodeView& n) {
  return each(n, [](double x) { return std::sinh(x); });
}
Results eval_cosh(const NodeView& n) {
  return each(n, [](double x) { return std::cosh(x); });
}
Results eval_tanh(const NodeView& n) {
  return each(n, [](double x) { return std::tanh(x); });
}
Results eval_asinh(const NodeView& n) {
  return each(n, [](double x) { return std::asinh(x); });
}
Results eval_acosh(const NodeView& n) {
  return each(n, [](double x) { return std::acosh(x); });
}
Results eval_atanh(const NodeView& n) {
  return each(n, [](double x) { return std::atanh(x); });
}
Results eval_erf(const NodeView& n) {
  return each(n, [](double x) { return std::erf(x); });
}
Results eval_sigmoid(const NodeView& n) { return each(n, sigmoid); }
Results eval_softplus(const NodeView& n) { return each(n, soft_plus); }

Results eval_relu(const NodeView& n) {
  return each(
      n, [](double x) { return x < 0 ? 0.0 : x; }, [](int64_t x) { return std::max<int64_t>(x, 0); });
}

Results eval_sign(const NodeView& n) {
  const bool is_positive = is_unsigned_input(n);
  return each(
      n,
      [](double x) {
        if (x > 0) return 1.0;
        return x < 0 ? -1.0 : x;
      },
      [=](int64_t x) { return x == 0                 ? 0
                              : x > 0 || is_positive ? 1
                                                     : -1; });
}

Results eval_not(const NodeView& n) {
  if (n.node().input(0)->constant->dtype != DType::Bool) return {};
  return each(n, nullptr, [](int64_t x) { return static_cast<int64_t>(x == 0); });
}

Results eval_bitwise_not(const NodeView& n) {
  if (!is_integer(n.node().input(0)->constant->dtype)) return {};
  return each(n, nullptr, [](int64_t x) { return ~x; });
}

Results eval_is_nan(const NodeView& n) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!is_float(x.dtype)) return {};
  return mapped<double>(x, DType::Bool, [](double value) { return static_cast<int64_t>(std::isnan(value)); });
}

Results eval_is_inf(const NodeView& n) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!is_float(x.dtype)) return {};
  const bool positive = n.flag("detect_positive"), negative = n.flag("detect_negative");
  return mapped<double>(x, DType::Bool, [=](double value) {
    return static_cast<int64_t>(std::isinf(value) && (value > 0 ? positive : negative));
  });
}

// Activations

Results eval_celu(const NodeView& n) {
  const double alpha = float_attribute(n, "alpha");
  // the two parts apart, as the spec has it: with a negative alpha neither is zero everywhere
  return each(n, [=](double x) {
    if (std::isnan(x)) return x;
    return std::max(0.0, x) + std::min(0.0, alpha * std::expm1(x / alpha));
  });
}

Results eval_elu(const NodeView& n) {
  const double alpha = float_attribute(n, "alpha");
  return each(n, [=](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

Results eval_gelu(const NodeView& n) {
  const std::string form = n.s("approximate");
  if (form == "none") return each(n, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); });
  if (form != "tanh") return {};
  return each(n, [](double x) {
    const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + std::tanh(inner));
  });
}

Results eval_hard_sigmoid(const NodeView& n) {
  const double alpha = float_attribute(n, "alpha"), beta = float_attribute(n, "beta");
  return each(n, [=](double x) {
    const double y = alpha * x + beta;
    return y < 0 ? 0.0 : y > 1 ? 1.0 : y;
  });
}

Results eval_hard_swish(const NodeView& n) {
  return each(n, [](double x) { return x * std::clamp(x * double(1.0F / 6) + 0.5, 0.0, 1.0); });
}

Results eval_leaky_relu(const NodeView& n) {
  const double alpha = float_attribute(n, "alpha");
  return each(n, [=](double x) { return x < 0 ? alpha * x : x; });
}

Results eval_mish(const NodeView& n) {
  return each(n, [](double x) { return x * std::tanh(soft_plus(x)); });
}

Results eval_selu(const NodeView& n) {
  const double alpha = float_attribute(n, "alpha"), gamma = float_attribute(n, "gamma");
  return each(n, [=](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

Results eval_shrink(const NodeView& n) {
  const double bias = float_attribute(n, "bias"), border = float_attribute(n, "lambd");
  const auto shrink = [=](double x) { return x < -border ? x + bias : x > border ? x - bias : 0.0; };
  const Tensor& x = *n.node().input(0)->constant;
  if (is_float(x.dtype)) return each(n, shrink);
  if (!contains(kAllInts, x.dtype) || info(x.dtype).bits > 32) return {};
  return mapped<double>(x, x.dtype, shrink);
}

Results eval_softsign(const NodeView& n) {
  return each(n, [](double x) { return x / (1 + std::fabs(x)); });
}

Results eval_swish(const NodeView& n) {
  const double alpha = float_attribute(n, "alpha");
  return each(n, [=](double x) { return x * sigmoid(alpha * x); });
}

Results eval_thresholded_relu(const NodeView& n) {
  const double alpha = float_attribute(n, "alpha");
  return each(n, [=](double x) { return x > alpha ? x : 0.0; });
}

}  // namespace tonnx
