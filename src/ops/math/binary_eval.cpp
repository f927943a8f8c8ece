// binary_eval.cpp - evaluation of arithmetic and comparisons of two and more tensors that are broadcast together.
#include <cmath>

#include "base/budget.h"
#include "ops/frame/eval_elements.h"
#include "ops/frame/eval_map.h"
#include "ops/math/rows.h"

namespace tonnx {

// Not inline: GCC 12 forgets to round where it does so for two numbers at a time (-ftree-slp-vectorize).
double float_attribute(const NodeView& n, std::string_view name) {
  return static_cast<double>(static_cast<float>(n.f(name)));
}

namespace {

const Tensor& input(const NodeView& n, size_t i) { return *n.node().input(i)->constant; }
bool counts(DType dtype) { return is_integer(dtype) || dtype == DType::Bool; }
Results only(TensorPtr result) { return result ? Results(std::move(result)) : Results(); }

bool can_pair(const Tensor& x, const Tensor& y) { return x.dtype == y.dtype && contains(kComputed, x.dtype); }

/// Integers wrap around, so that sums and products are those of unsigned numbers.
template <class F>
TensorPtr arithmetic(const Tensor& x, const Tensor& y, const F& f) {
  if (!can_pair(x, y)) return nullptr;
  return counts(x.dtype) ? zipped<uint64_t>(x, y, x.dtype, f) : zipped_in_own_type(x, y, x.dtype, f);
}

/// Of all inputs, one after the other.
template <class F>
TensorPtr all_inputs(const NodeView& n, const F& pair) {
  TensorPtr result = n.node().input(0)->constant;
  if (!contains(kComputed, result->dtype)) return nullptr;
  for (size_t i = 1; i < n.node().inputs().size() && result; ++i) {
    if (!budget().try_take(Resource::Steps, result->count())) return nullptr;
    result = pair(*result, input(n, i));
  }
  return result;
}

template <class T>
bool is_nan(T x) {
  return x != x;
}

/// numpy's rule: NaN wins.
TensorPtr larger(const Tensor& x, const Tensor& y) {
  if (!can_pair(x, y)) return nullptr;
  return zipped_in_own_type(x, y, x.dtype, [](auto a, auto b) { return is_nan(a) || a > b ? a : b; });
}
TensorPtr smaller(const Tensor& x, const Tensor& y) {
  if (!can_pair(x, y)) return nullptr;
  return zipped_in_own_type(x, y, x.dtype, [](auto a, auto b) { return is_nan(a) || a < b ? a : b; });
}

template <class F>
Results test(const NodeView& n, const F& f) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  if (!can_pair(x, y)) return {};
  return only(zipped_in_own_type(x, y, DType::Bool, [&](auto a, auto b) { return static_cast<int64_t>(f(a, b)); }));
}

template <class F>
Results logic(const NodeView& n, const F& f) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  if (x.dtype != DType::Bool || y.dtype != DType::Bool) return {};
  return only(zipped<int64_t>(x, y, DType::Bool,
                              [&](int64_t a, int64_t b) { return static_cast<int64_t>(f(a != 0, b != 0)); }));
}

template <class F>
Results bitwise(const NodeView& n, const F& f) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  if (x.dtype != y.dtype || !contains(kAllInts, x.dtype)) return {};
  return only(zipped<uint64_t>(x, y, x.dtype, f));
}

bool has_zero(const Tensor& x) {
  for (int64_t i = 0; i < x.count(); ++i) {
    if (element_as_int(x, i) == 0) return true;
  }
  return false;
}

template <class T>
T quotient(T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));  // of the smallest number too
  }
  return a / b;
}

template <class T>
T remainder(T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (b == -1) return 0;
  }
  return a % b;
}

/// As the spec has it: the sign of the divisor, of zeros too.
double floor_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (std::isnan(rest)) return rest;
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? (std::isinf(b) ? b : rest + b) : rest;
}

uint64_t int_power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1U) {
    if (exponent & 1U) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

Results eval_add(const NodeView& n) {
  return only(arithmetic(input(n, 0), input(n, 1), [](auto a, auto b) { return a + b; }));
}
Results eval_sub(const NodeView& n) {
  return only(arithmetic(input(n, 0), input(n, 1), [](auto a, auto b) { return a - b; }));
}
Results eval_mul(const NodeView& n) {
  return only(arithmetic(input(n, 0), input(n, 1), [](auto a, auto b) { return a * b; }));
}

Results eval_div(const NodeView& n) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  if (!can_pair(x, y) || (counts(y.dtype) && has_zero(y))) return {};
  return only(zipped_in_own_type(x, y, x.dtype, [](auto a, auto b) { return quotient(a, b); }));
}

Results eval_mod(const NodeView& n) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  const bool truncated = n.flag("fmod");
  if (!can_pair(x, y) || (counts(y.dtype) && has_zero(y))) return {};
  if (is_float(x.dtype)) {
    if (truncated) return only(zipped<double>(x, y, x.dtype, [](double a, double b) { return std::fmod(a, b); }));
    return only(zipped<double>(x, y, x.dtype, floor_remainder));
  }
  if (is_unsigned(x.dtype)) return only(zipped<uint64_t>(x, y, x.dtype, remainder<uint64_t>));
  return only(zipped<int64_t>(x, y, x.dtype, [=](int64_t a, int64_t b) {
    const int64_t rest = remainder(a, b);
    return !truncated && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }));
}

/// The result is of the type of the base; a power that is no whole number is cut to one.
Results eval_pow(const NodeView& n) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  if (!contains(kComputed, x.dtype) || !contains(kComputed, y.dtype)) return {};
  const auto power = [](double a, double b) { return std::pow(a, b); };
  if (is_float(x.dtype)) return only(zipped<double>(x, y, x.dtype, power));
  if (is_float(y.dtype)) {
    bool fits = true;
    const double limit = std::ldexp(1.0, std::min(53, info(x.dtype).bits - is_signed_int(x.dtype)));
    TensorPtr result = zipped<double>(x, y, DType::Float64, power);
    if (!result) return {};
    for (const double each : numbers_of(*result)) fits = fits && std::fabs(each) < limit;
    return fits ? only(mapped<double>(*result, x.dtype, [](double each) { return each; })) : Results();
  }
  if (!is_unsigned(y.dtype)) {
    for (int64_t i = 0; i < y.count(); ++i) {
      if (element_as_int(y, i) < 0) return {};
    }
  }
  return only(zipped<uint64_t>(x, y, x.dtype, int_power));
}

Results eval_max(const NodeView& n) { return only(all_inputs(n, larger)); }
Results eval_min(const NodeView& n) { return only(all_inputs(n, smaller)); }

namespace {

/// Sums of small floats are rounded once.
TensorPtr sum_of_inputs(const NodeView& n, double scale) {
  const DType dtype = input(n, 0).dtype;
  if (!is_float(dtype) || !contains(kComputed, dtype)) return nullptr;
  for (size_t i = 0; i < n.node().inputs().size(); ++i) {
    if (input(n, i).dtype != dtype) return nullptr;
  }
  TensorPtr sum = mapped<double>(input(n, 0), DType::Float64, [](double x) { return x; });
  for (size_t i = 1; i < n.node().inputs().size() && sum; ++i)
    sum = zipped<double>(*sum, input(n, i), DType::Float64, [](double a, double b) { return a + b; });
  return sum ? mapped<double>(*sum, dtype, [=](double x) { return x / scale; }) : nullptr;
}

}  // namespace

Results eval_sum(const NodeView& n) { return only(sum_of_inputs(n, 1)); }
Results eval_mean(const NodeView& n) { return only(sum_of_inputs(n, static_cast<double>(n.node().inputs().size()))); }

Results eval_prelu(const NodeView& n) {
  const Tensor &x = input(n, 0), &slope = input(n, 1);
  if (!can_pair(x, slope) || broadcast_dims(x.dims, slope.dims) != x.dims) return {};
  if (is_unsigned(x.dtype)) return n.node().input(0)->constant;
  if (!is_float(x.dtype)) {
    return only(zipped<int64_t>(x, slope, x.dtype, [](int64_t a, int64_t b) {
      return a < 0 ? static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)) : a;
    }));
  }
  return only(zipped_in_own_type(x, slope, x.dtype, [](auto a, auto b) { return a < 0 ? a * b : a; }));
}

Results eval_swiglu(const NodeView& n) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  if (!can_pair(x, y) || !is_float(x.dtype) || x.dims != y.dims) return {};
  const double alpha = float_attribute(n, "alpha");
  return only(zipped<double>(x, y, x.dtype, [=](double a, double b) { return a / (1 + std::exp(-alpha * a)) * b; }));
}

Results eval_bit_shift(const NodeView& n) {
  const Tensor &x = input(n, 0), &y = input(n, 1);
  const std::string direction = n.s("direction");
  if (x.dtype != y.dtype || !contains(kAllInts, x.dtype) || (direction != "LEFT" && direction != "RIGHT")) return {};
  const auto bits = static_cast<uint64_t>(info(x.dtype).bits);  // a negative distance is a large one
  if (direction == "LEFT")
    return only(zipped<uint64_t>(x, y, x.dtype, [=](uint64_t a, uint64_t by) { return by < bits ? a << by : 0; }));
  if (is_unsigned(x.dtype))
    return only(zipped<uint64_t>(x, y, x.dtype, [=](uint64_t a, uint64_t by) { return by < bits ? a >> by : 0; }));
  return only(zipped<int64_t>(x, y, x.dtype, [=](int64_t a, int64_t by) {
    return by >= 0 && by < static_cast<int64_t>(bits) ? a >> by : a < 0 ? -1 : 0;
  }));
}

Results eval_bitwise_and(const NodeView& n) {
  return bitwise(n, [](uint64_t a, uint64_t b) { return a & b; });
}
Results eval_bitwise_or(const NodeView& n) {
  return bitwise(n, [](uint64_t a, uint64_t b) { return a | b; });
}
Results eval_bitwise_xor(const NodeView& n) {
  return bitwise(n, [](uint64_t a, uint64_t b) { return a ^ b; });
}

// Comparisons

namespace {

Results equal_strings(const Tensor& x, const Tensor& y) {
  const auto dims = broadcast_dims(x.dims, y.dims);
  if (!dims || y.dtype != DType::String) return {};
  NewTensor result(DType::Bool, *dims);
  std::vector<int64_t> at(static_cast<size_t>(result.count()));
  Walk(*dims, broadcast_strides(x.dims, *dims)).for_each([&](int64_t i, int64_t from) {
    at[static_cast<size_t>(i)] = from;
  });
  Walk(*dims, broadcast_strides(y.dims, *dims)).for_each([&](int64_t i, int64_t from) {
    const std::string& left = x.strings[static_cast<size_t>(at[static_cast<size_t>(i)])];
    result.data()[i] = left == y.strings[static_cast<size_t>(from)];
  });
  return result.done();
}

}  // namespace

Results eval_equal(const NodeView& n) {
  if (input(n, 0).dtype == DType::String) return equal_strings(input(n, 0), input(n, 1));
  return test(n, [](auto a, auto b) { return a == b; });
}
Results eval_less(const NodeView& n) {
  return test(n, [](auto a, auto b) { return a < b; });
}
Results eval_less_or_equal(const NodeView& n) {
  return test(n, [](auto a, auto b) { return a <= b; });
}
Results eval_greater(const NodeView& n) {
  return test(n, [](auto a, auto b) { return a > b; });
}
Results eval_greater_or_equal(const NodeView& n) {
  return test(n, [](auto a, auto b) { return a >= b; });
}
Results eval_and(const NodeView& n) {
  return logic(n, [](bool a, bool b) { return a && b; });
}
Results eval_or(const NodeView& n) {
  return logic(n, [](bool a, bool b) { return a || b; });
}
Results eval_xor(const NodeView& n) {
  return logic(n, [](bool a, bool b) { return a != b; });
}

Results eval_where(const NodeView& n) {
  const Tensor &condition = input(n, 0), &x = input(n, 1), &y = input(n, 2);
  auto dims = broadcast_dims(x.dims, y.dims);
  if (dims) dims = broadcast_dims(*dims, condition.dims);
  if (!dims || x.dtype != y.dtype || condition.dtype != DType::Bool) return {};
  const TensorPtr flags = strided(condition, *dims, broadcast_strides(condition.dims, *dims));
  const TensorPtr a = strided(x, *dims, broadcast_strides(x.dims, *dims)),
                  b = strided(y, *dims, broadcast_strides(y.dims, *dims));
  const int bits = info(x.dtype).bits;
  if (bits < 8) {  // strings, and types of a few bits
    Elements result(x.dtype, *dims);
    for (int64_t i = 0; i < result.count(); ++i) result.copy(i, flags->data.data()[i] != 0 ? *a : *b, i);
    return result.done();
  }
  NewTensor result(x.dtype, *dims);
  const auto size = static_cast<size_t>(bits / 8);
  for (size_t i = 0; i < static_cast<size_t>(result.count()); ++i) {
    const uint8_t* from = (flags->data.data()[i] != 0 ? a : b)->data.data() + i * size;
    std::copy(from, from + size, result.data() + i * size);
  }
  return result.done();
}

Results eval_clip(const NodeView& n) {
  TensorPtr x = n.node().input(0)->constant;
  if (!contains(kComputed, x->dtype)) return {};
  for (size_t i = 1; i < n.node().inputs().size() && x; ++i) {
    if (n.node().input(i) == nullptr) continue;
    const Tensor& bound = input(n, i);
    if (!can_pair(*x, bound) || bound.count() != 1 || bound.dims.size() > x->dims.size()) return {};
    x = i == 1 ? zipped_in_own_type(*x, bound, x->dtype, [](auto a, auto b) { return a < b || is_nan(b) ? b : a; })
               : zipped_in_own_type(*x, bound, x->dtype, [](auto a, auto b) { return a > b || is_nan(b) ? b : a; });
  }
  return only(x);
}

}  // namespace tonnx
