// eval_math.cpp - evaluation of arithmetic: element by element, pairs, comparisons, casts, reductions, matrix products.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/eval.h"

namespace tonnx {
namespace {

constexpr DTypeSet kPlain =
    kAllInts | dtype_set(DType::Bool, DType::Float32, DType::Float64, DType::Float16, DType::BFloat16);

bool is_plain(const TensorPtr& tensor) { return tensor && contains(kPlain, tensor->dtype); }
bool counts(DType dtype) { return is_integer(dtype) || dtype == DType::Bool; }

/// Where each element of two tensors lies that are broadcast together.
struct Pairing {
  std::vector<int64_t> dims, a, b;
};

std::optional<Pairing> pairing(const Tensor& x, const Tensor& y) {
  Pairing result;
  const size_t rank = std::max(x.dims.size(), y.dims.size());
  for (size_t i = 0; i < rank; ++i) {
    const int64_t a = i + x.dims.size() < rank ? 1 : x.dims[i + x.dims.size() - rank];
    const int64_t b = i + y.dims.size() < rank ? 1 : y.dims[i + y.dims.size() - rank];
    if (a != b && a != 1 && b != 1) return std::nullopt;
    result.dims.push_back(a == 1 ? b : a);
  }
  result.a = broadcast_strides(x.dims, result.dims);
  result.b = broadcast_strides(y.dims, result.dims);
  return result;
}

template <class Use>
void walk_pairs(const Pairing& p, Use&& use) {
  const int64_t count = count_of(p.dims);
  std::vector<int64_t> index(p.dims.size(), 0);
  int64_t a = 0, b = 0;
  for (int64_t i = 0; i < count; ++i) {
    use(i, a, b);
    for (size_t d = p.dims.size(); d-- > 0;) {
      a += p.a[d];
      b += p.b[d];
      if (++index[d] < p.dims[d]) break;
      a -= p.a[d] * p.dims[d];
      b -= p.b[d] * p.dims[d];
      index[d] = 0;
    }
  }
}

TensorPtr pair_up(const Tensor& x, const Tensor& y, FloatFn2 on_floats, IntFn2 on_ints) {
  const auto p = pairing(x, y);
  if (!p || !contains(kPlain, x.dtype) || !contains(kPlain, y.dtype)) return nullptr;
  NewTensor result(x.dtype, p->dims);
  if (is_float(x.dtype)) {
    if (on_floats == nullptr) return nullptr;
    walk_pairs(*p, [&](int64_t i, int64_t a, int64_t b) {
      result.set(i, on_floats(element_as_double(x, a), element_as_double(y, b)));
    });
  } else {
    if (on_ints == nullptr) return nullptr;
    const bool is_positive = is_unsigned(x.dtype);
    walk_pairs(*p, [&](int64_t i, int64_t a, int64_t b) {
      result.set(i, on_ints(element_as_int(x, a), element_as_int(y, b), is_positive));
    });
  }
  return result.done();
}

/// Of all inputs, one after the other.
Results eval_all(const NodeView& n, FloatFn2 on_floats, IntFn2 on_ints) {
  TensorPtr result = n.node().input(0)->constant;
  for (size_t i = 1; i < n.node().inputs().size() && result; ++i) {
    result = pair_up(*result, *n.node().input(i)->constant, on_floats, on_ints);
  }
  return result ? Results(result) : Results();
}

}  // namespace

Results eval_each(const NodeView& n, FloatFn on_floats, IntFn on_ints) {
  const TensorPtr x = n.node().input(0)->constant;
  if (!is_plain(x) || (is_float(x->dtype) ? on_floats == nullptr : on_ints == nullptr)) return {};
  NewTensor result(x->dtype, x->dims);
  for (int64_t i = 0; i < result.count(); ++i) {
    if (is_float(x->dtype))
      result.set(i, on_floats(element_as_double(*x, i)));
    else
      result.set(i, on_ints(element_as_int(*x, i)));
  }
  return result.done();
}

Results eval_pairs(const NodeView& n, FloatFn2 on_floats, IntFn2 on_ints) {
  TensorPtr result = pair_up(*n.node().input(0)->constant, *n.node().input(1)->constant, on_floats, on_ints);
  return result ? Results(result) : Results();
}

Results eval_tests(const NodeView& n, FloatTest on_floats, IntTest on_ints) {
  const Tensor &x = *n.node().input(0)->constant, &y = *n.node().input(1)->constant;
  const auto p = pairing(x, y);
  if (!p || !contains(kPlain, x.dtype) || x.dtype != y.dtype) return {};
  NewTensor result(DType::Bool, p->dims);
  const bool floats = is_float(x.dtype), is_positive = is_unsigned(x.dtype);
  if (floats && on_floats == nullptr) return {};
  walk_pairs(*p, [&](int64_t i, int64_t a, int64_t b) {
    const bool flag = floats ? on_floats(element_as_double(x, a), element_as_double(y, b))
                             : on_ints(element_as_int(x, a), element_as_int(y, b), is_positive);
    result.set(i, static_cast<int64_t>(flag));
  });
  return result.done();
}

// One input

Results eval_abs(const NodeView& n) {
  return eval_each(n, std::fabs, [](int64_t x) { return x < 0 ? -x : x; });
}
Results eval_neg(const NodeView& n) {
  return eval_each(
      n, [](double x) { return -x; }, [](int64_t x) { return -x; });
}
Results eval_sqrt(const NodeView& n) { return eval_each(n, std::sqrt, nullptr); }
Results eval_exp(const NodeView& n) { return eval_each(n, std::exp, nullptr); }
Results eval_log(const NodeView& n) { return eval_each(n, std::log, nullptr); }
Results eval_reciprocal(const NodeView& n) {
  return eval_each(
      n, [](double x) { return 1.0 / x; }, nullptr);
}
Results eval_floor(const NodeView& n) { return eval_each(n, std::floor, nullptr); }
Results eval_ceil(const NodeView& n) { return eval_each(n, std::ceil, nullptr); }
Results eval_sin(const NodeView& n) { return eval_each(n, std::sin, nullptr); }
Results eval_cos(const NodeView& n) { return eval_each(n, std::cos, nullptr); }
Results eval_tanh(const NodeView& n) { return eval_each(n, std::tanh, nullptr); }
Results eval_erf(const NodeView& n) { return eval_each(n, std::erf, nullptr); }
Results eval_round(const NodeView& n) { return eval_each(n, std::nearbyint, nullptr); }
Results eval_sigmoid(const NodeView& n) {
  return eval_each(
      n, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }, nullptr);
}
Results eval_relu(const NodeView& n) {
  return eval_each(
      n, [](double x) { return x < 0 ? 0.0 : x; }, [](int64_t x) { return std::max<int64_t>(x, 0); });
}
Results eval_sign(const NodeView& n) {
  if (is_unsigned(n.node().input(0)->constant->dtype)) return {};
  return eval_each(
      n, [](double x) { return x > 0   ? 1.0
                               : x < 0 ? -1.0
                                       : x; },
      [](int64_t x) { return static_cast<int64_t>(x > 0) - (x < 0); });
}
Results eval_not(const NodeView& n) {
  return eval_each(n, nullptr, [](int64_t x) { return static_cast<int64_t>(x == 0); });
}

Results eval_clip(const NodeView& n) {
  TensorPtr x = n.node().input(0)->constant;
  for (size_t i = 1; i < n.node().inputs().size() && x; ++i) {
    if (n.node().input(i) == nullptr) continue;
    const Tensor& bound = *n.node().input(i)->constant;
    x = i == 1 ? pair_up(
                     *x, bound, [](double a, double b) { return a < b ? b : a; },
                     [](int64_t a, int64_t b, bool u) {
                       return u ? static_cast<int64_t>(std::max(static_cast<uint64_t>(a), static_cast<uint64_t>(b)))
                                : std::max(a, b);
                     })
               : pair_up(
                     *x, bound, [](double a, double b) { return a > b ? b : a; },
                     [](int64_t a, int64_t b, bool u) {
                       return u ? static_cast<int64_t>(std::min(static_cast<uint64_t>(a), static_cast<uint64_t>(b)))
                                : std::min(a, b);
                     });
  }
  return x ? Results(x) : Results();
}

// Two inputs. Integers wrap around, so sums and products are those of unsigned numbers.

Results eval_add(const NodeView& n) {
  return eval_all(
      n, [](double a, double b) { return a + b; },
      [](int64_t a, int64_t b, bool) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      });
}
Results eval_sub(const NodeView& n) {
  return eval_pairs(
      n, [](double a, double b) { return a - b; },
      [](int64_t a, int64_t b, bool) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
      });
}
Results eval_mul(const NodeView& n) {
  return eval_pairs(
      n, [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b, bool) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      });
}

namespace {

bool has_zero(const Tensor& x) {
  for (int64_t i = 0; i < x.count(); ++i) {
    if (element_as_int(x, i) == 0) return true;
  }
  return false;
}

int64_t divided(int64_t a, int64_t b, bool is_positive) {
  if (is_positive) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  return b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
}

}  // namespace

Results eval_div(const NodeView& n) {
  const Tensor& divisor = *n.node().input(1)->constant;
  if (counts(divisor.dtype) && has_zero(divisor)) return {};
  return eval_pairs(
      n, [](double a, double b) { return a / b; }, divided);
}

Results eval_mod(const NodeView& n) {
  const Tensor& divisor = *n.node().input(1)->constant;
  if (!counts(divisor.dtype)) return n.flag("fmod") ? eval_pairs(n, std::fmod, nullptr) : Results();
  if (has_zero(divisor)) return {};
  if (n.flag("fmod")) {
    return eval_pairs(n, nullptr, [](int64_t a, int64_t b, bool u) { return a - divided(a, b, u) * b; });
  }
  return eval_pairs(n, nullptr, [](int64_t a, int64_t b, bool u) {
    const int64_t rest = a - divided(a, b, u) * b;
    return !u && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  });
}

Results eval_pow(const NodeView& n) {
  const Tensor &base = *n.node().input(0)->constant, &exponent = *n.node().input(1)->constant;
  if (is_float(base.dtype) && is_float(exponent.dtype)) return eval_pairs(n, std::pow, nullptr);
  const auto p = pairing(base, exponent);
  if (!p || !is_float(base.dtype) || !contains(kPlain, base.dtype) || !contains(kPlain, exponent.dtype)) return {};
  NewTensor result(base.dtype, p->dims);
  walk_pairs(*p, [&](int64_t i, int64_t a, int64_t b) {
    result.set(i, std::pow(element_as_double(base, a), element_as_double(exponent, b)));
  });
  return result.done();
}

Results eval_max(const NodeView& n) {
  return eval_all(
      n, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); },
      [](int64_t a, int64_t b, bool u) {
        return (u ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b) ? b : a;
      });
}
Results eval_min(const NodeView& n) {
  return eval_all(
      n, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); },
      [](int64_t a, int64_t b, bool u) {
        return (u ? static_cast<uint64_t>(b) < static_cast<uint64_t>(a) : b < a) ? b : a;
      });
}

Results eval_equal(const NodeView& n) {
  return eval_tests(
      n, [](double a, double b) { return a == b; }, [](int64_t a, int64_t b, bool) { return a == b; });
}
Results eval_less(const NodeView& n) {
  return eval_tests(
      n, [](double a, double b) { return a < b; },
      [](int64_t a, int64_t b, bool u) { return u ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b; });
}
Results eval_less_or_equal(const NodeView& n) {
  return eval_tests(
      n, [](double a, double b) { return a <= b; },
      [](int64_t a, int64_t b, bool u) { return u ? static_cast<uint64_t>(a) <= static_cast<uint64_t>(b) : a <= b; });
}
Results eval_greater(const NodeView& n) {
  return eval_tests(
      n, [](double a, double b) { return a > b; },
      [](int64_t a, int64_t b, bool u) { return u ? static_cast<uint64_t>(a) > static_cast<uint64_t>(b) : a > b; });
}
Results eval_greater_or_equal(const NodeView& n) {
  return eval_tests(
      n, [](double a, double b) { return a >= b; },
      [](int64_t a, int64_t b, bool u) { return u ? static_cast<uint64_t>(a) >= static_cast<uint64_t>(b) : a >= b; });
}
Results eval_and(const NodeView& n) {
  return eval_tests(n, nullptr, [](int64_t a, int64_t b, bool) { return a != 0 && b != 0; });
}
Results eval_or(const NodeView& n) {
  return eval_tests(n, nullptr, [](int64_t a, int64_t b, bool) { return a != 0 || b != 0; });
}
Results eval_xor(const NodeView& n) {
  return eval_tests(n, nullptr, [](int64_t a, int64_t b, bool) { return (a != 0) != (b != 0); });
}

Results eval_where(const NodeView& n) {
  const Tensor &condition = *n.node().input(0)->constant, &x = *n.node().input(1)->constant,
               &y = *n.node().input(2)->constant;
  const auto dims = static_dims(n.node().output(0));
  if (!dims || info(x.dtype).bits < 8 || x.dtype != y.dtype || condition.dtype != DType::Bool) return {};
  for (const Tensor* each : {&condition, &x, &y}) {
    if (each->dims.size() > dims->size()) return {};
  }
  const TensorPtr flags = strided(condition, *dims, broadcast_strides(condition.dims, *dims));
  const TensorPtr a = strided(x, *dims, broadcast_strides(x.dims, *dims)),
                  b = strided(y, *dims, broadcast_strides(y.dims, *dims));
  if (info(x.dtype).bits > 64) return {};
  NewTensor result(x.dtype, *dims);
  for (int64_t i = 0; i < result.count(); ++i) {
    set_element_bits(x.dtype, result.data(), i, element_bits(element_as_int(*flags, i) != 0 ? *a : *b, i));
  }
  return result.done();
}

Results eval_cast(const NodeView& n) {
  const TensorPtr x = n.node().input(0)->constant;
  const DType to = n.node().output(0)->type.dtype;
  if (!is_plain(x) || !contains(kPlain, to)) return {};
  if (to == x->dtype) return x;
  NewTensor result(to, x->dims);
  const bool from_float = is_float(x->dtype), to_float = is_float(to);
  for (int64_t i = 0; i < result.count(); ++i) {
    if (to == DType::Bool) {
      result.set(i, static_cast<int64_t>(from_float ? element_as_double(*x, i) != 0 : element_as_int(*x, i) != 0));
    } else if (to_float) {
      result.set(i, element_as_double(*x, i));
    } else {
      if (from_float && !(std::fabs(element_as_double(*x, i)) < 9.2e18)) return {};
      result.set(i, element_as_int(*x, i));
    }
  }
  return result.done();
}

// Reductions

namespace {

Results reduce(const NodeView& n, double start, FloatFn2 on_floats, IntFn2 on_ints, bool is_mean = false) {
  const TensorPtr x = n.node().input(0)->constant;
  if (!is_plain(x)) return {};
  const auto rank = static_cast<int64_t>(x->dims.size());
  std::vector<bool> reduced(x->dims.size(), false);
  const auto axes = n.find_const_ints("axes");
  if (!axes || axes->empty()) {
    if (n.flag("noop_with_empty_axes")) return {};
    reduced.assign(x->dims.size(), true);
  } else {
    for (const int64_t axis : *axes) reduced[static_cast<size_t>(NodeView::normalized(axis, rank))] = true;
  }
  std::vector<int64_t> kept, shown_dims, strides(x->dims.size(), 0);
  int64_t count = 1;
  for (size_t i = 0; i < x->dims.size(); ++i) {
    kept.push_back(reduced[i] ? 1 : x->dims[i]);
    if (reduced[i]) count *= x->dims[i];
    if (!reduced[i] || n.flag("keepdims")) shown_dims.push_back(kept.back());
  }
  if (count == 0 || (is_mean && !is_float(x->dtype))) return {};
  const std::vector<int64_t> dense = strides_of(kept);
  for (size_t i = 0; i < kept.size(); ++i) strides[i] = reduced[i] ? 0 : dense[i];
  std::vector<double> floats(static_cast<size_t>(is_float(x->dtype) ? count_of(kept) : 0), start);
  std::vector<int64_t> ints(static_cast<size_t>(is_float(x->dtype) ? 0 : count_of(kept)), 0);
  std::vector<bool> begun(static_cast<size_t>(count_of(kept)), false);
  Pairing all{x->dims, strides_of(x->dims), strides};
  const bool is_positive = is_unsigned(x->dtype);
  walk_pairs(all, [&](int64_t, int64_t from, int64_t to) {
    const auto at = static_cast<size_t>(to);
    if (is_float(x->dtype)) {
      const double value = element_as_double(*x, from);
      floats[at] = begun[at] ? on_floats(floats[at], value) : value;
    } else {
      const int64_t value = element_as_int(*x, from);
      ints[at] = begun[at] ? on_ints(ints[at], value, is_positive) : value;
    }
    begun[at] = true;
  });
  NewTensor result(x->dtype, shown_dims);
  for (int64_t i = 0; i < result.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (is_float(x->dtype))
      result.set(i, is_mean ? floats[at] / static_cast<double>(count) : floats[at]);
    else
      result.set(i, ints[at]);
  }
  return result.done();
}

double add_floats(double a, double b) { return a + b; }
int64_t add_ints(int64_t a, int64_t b, bool) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

Results eval_reduce_sum(const NodeView& n) { return reduce(n, 0, add_floats, add_ints); }
Results eval_reduce_mean(const NodeView& n) { return reduce(n, 0, add_floats, add_ints, true); }
Results eval_reduce_prod(const NodeView& n) {
  return reduce(
      n, 1, [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b, bool) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      });
}
Results eval_reduce_max(const NodeView& n) {
  return reduce(
      n, 0, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); },
      [](int64_t a, int64_t b, bool u) {
        return (u ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b) ? b : a;
      });
}
Results eval_reduce_min(const NodeView& n) {
  return reduce(
      n, 0, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); },
      [](int64_t a, int64_t b, bool u) {
        return (u ? static_cast<uint64_t>(b) < static_cast<uint64_t>(a) : b < a) ? b : a;
      });
}

/// Two matrices; batches are left to the run.
Results eval_matmul(const NodeView& n) {
  constexpr int64_t kMostWork = int64_t{1} << 24;
  const Tensor &a = *n.node().input(0)->constant, &b = *n.node().input(1)->constant;
  if (a.dims.size() != 2 || b.dims.size() != 2 || a.dims[1] != b.dims[0] || !is_float(a.dtype) || a.dtype != b.dtype ||
      !contains(kPlain, a.dtype))
    return {};
  const int64_t rows = a.dims[0], inner = a.dims[1], columns = b.dims[1];
  if (rows > kMostWork || columns > kMostWork || inner > kMostWork || (inner > 0 && rows * columns > kMostWork / inner))
    return {};
  NewTensor result(a.dtype, {rows, columns});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += element_as_double(a, i * inner + k) * element_as_double(b, k * columns + j);
      result.set(i * columns + j, sum);
    }
  }
  return result.done();
}

}  // namespace tonnx
