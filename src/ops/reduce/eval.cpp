// eval.cpp - evaluation of reductions: sums, norms, extremes and their places.
#include <cmath>
#include <limits>

#include "ops/frame/eval_map.h"
#include "ops/reduce/rows.h"

namespace tonnx {
namespace {

/// A tensor in groups: all elements that become one lie one behind the other.
struct Groups {
  NumberReader reader;
  int64_t size;  // of each
  std::vector<int64_t> result_dims;
};

Groups grouped(const Tensor& x, const std::vector<bool>& reduced, bool keep) {
  std::vector<int64_t> dims, strides, result_dims;
  const std::vector<int64_t> dense = strides_of(x.dims);
  int64_t size = 1;
  for (const bool last : {false, true}) {
    for (size_t i = 0; i < x.dims.size(); ++i) {
      if (reduced[i] != last) continue;
      dims.push_back(x.dims[i]);
      strides.push_back(dense[i]);
      if (last) size *= x.dims[i];
    }
  }
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (!reduced[i] || keep) result_dims.push_back(reduced[i] ? 1 : x.dims[i]);
  }
  return {NumberReader(x, dims, strides), size, result_dims};
}

std::optional<Groups> find_groups(const NodeView& n) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!contains(kComputed, x.dtype)) return std::nullopt;
  std::vector<bool> reduced(x.dims.size(), false);
  const auto axes = n.find_const_ints("axes");
  if (n.has("axes") && !axes) return std::nullopt;
  if (!axes || axes->empty()) {
    reduced.assign(x.dims.size(), !n.flag("noop_with_empty_axes"));
  } else {
    const auto rank = static_cast<int64_t>(x.dims.size());
    if (rank == 0) return std::nullopt;
    for (const int64_t axis : *axes) reduced[static_cast<size_t>(NodeView::normalized(axis, rank))] = true;
  }
  return grouped(x, reduced, n.flag("keepdims"));
}

/// Folds each group from `start` on with `step`, and gives `finish` of what that makes.
template <class T, class Sum, class Step, class Finish>
TensorPtr folded(const Groups& groups, DType to, const Sum& start, const Step& step, const Finish& finish) {
  NewTensor result(to, groups.result_dims);
  in_parallel(
      result.count(),
      [&](int64_t begin, int64_t end) {
        T block[kBlock];
        Sum sum = start;
        int64_t group = begin, place = 0;
        const auto close = [&] {
          const decltype(finish(sum)) value = finish(sum);
          store_numbers(to, result.data(), group++, 1, &value);
          sum = start;
          place = 0;
        };
        for (; groups.size == 0 && group < end;) close();
        for (int64_t i = begin * groups.size; i < end * groups.size; i += kBlock) {
          const int64_t count = std::min(kBlock, end * groups.size - i);
          groups.reader.read(i, count, block);
          for (int64_t k = 0; k < count; ++k) {
            step(sum, block[k]);
            if (++place == groups.size) close();
          }
        }
      },
      groups.size);
  return result.done();
}

/// Floats in double, integers in 64 bits that wrap around.
template <class Step>
Results summed(const NodeView& n, int start, const Step& step) {
  const auto groups = find_groups(n);
  if (!groups) return {};
  const DType dtype = n.node().input(0)->constant->dtype;
  const auto same = [](auto value) { return value; };
  if (is_float(dtype)) return folded<double>(*groups, dtype, double(start), step, same);
  return folded<uint64_t>(*groups, dtype, static_cast<uint64_t>(start), step, same);
}

/// Only of floats.
template <class Sum, class Step, class Finish>
Results measured(const NodeView& n, const Sum& start, const Step& step, const Finish& finish) {
  const DType dtype = n.node().input(0)->constant->dtype;
  const auto groups = find_groups(n);
  if (!groups || !is_float(dtype)) return {};
  return folded<double>(*groups, dtype, start, step, finish);
}

/// An extreme in the element's own order; `is_before(a, b)`: a is to be taken rather than b.
template <class IsBefore>
Results extreme(const NodeView& n, bool largest, const IsBefore& is_before) {
  const auto groups = find_groups(n);
  const Tensor& x = *n.node().input(0)->constant;
  if (!groups) return {};
  const auto step = [&](auto& best, auto value) {
    if (value != value || is_before(value, best)) best = value;
  };
  const auto same = [](auto value) { return value; };
  if (is_float(x.dtype)) return folded<double>(*groups, x.dtype, largest ? -HUGE_VAL : HUGE_VAL, step, same);
  // of nothing: the last number of the type on the other side
  const int bits = x.dtype == DType::Bool ? 1 : info(x.dtype).bits;
  if (!is_signed_int(x.dtype)) {
    const uint64_t all = UINT64_MAX >> static_cast<unsigned>(64 - bits);
    return folded<uint64_t>(*groups, x.dtype, largest ? 0 : all, step, same);
  }
  const int64_t highest = INT64_MAX >> static_cast<unsigned>(64 - bits);
  return folded<int64_t>(*groups, x.dtype, largest ? -highest - 1 : highest, step, same);
}

}  // namespace

Results eval_reduce_sum(const NodeView& n) {
  return summed(n, 0, [](auto& sum, auto x) { sum += x; });
}
Results eval_reduce_prod(const NodeView& n) {
  return summed(n, 1, [](auto& product, auto x) { product *= x; });
}
Results eval_reduce_sum_square(const NodeView& n) {
  return summed(n, 0, [](auto& sum, auto x) { sum += x * x; });
}
Results eval_reduce_l1(const NodeView& n) {
  if (is_unsigned(n.node().input(0)->constant->dtype)) return eval_reduce_sum(n);
  return summed(n, 0, [](auto& sum, auto x) {
    if constexpr (std::is_same_v<decltype(x), double>)
      sum += std::fabs(x);
    else
      sum += static_cast<int64_t>(x) < 0 ? -x : x;
  });
}

Results eval_reduce_mean(const NodeView& n) {
  const auto groups = find_groups(n);
  if (!groups || groups->size == 0) return {};
  const auto count = static_cast<double>(groups->size);
  return measured(
      n, 0.0, [](double& sum, double x) { sum += x; }, [=](double sum) { return sum / count; });
}
Results eval_reduce_l2(const NodeView& n) {
  return measured(
      n, 0.0, [](double& sum, double x) { sum += x * x; }, [](double sum) { return std::sqrt(sum); });
}
Results eval_reduce_log_sum(const NodeView& n) {
  return measured(
      n, 0.0, [](double& sum, double x) { sum += x; }, [](double sum) { return std::log(sum); });
}

Results eval_reduce_log_sum_exp(const NodeView& n) {
  struct Sum {
    double largest = -HUGE_VAL, rest = 0;  // rest: sum of exp(x - largest)
  };
  return measured(
      n, Sum(),
      [](Sum& sum, double x) {
        if (x == sum.largest) {
          sum.rest += 1;
        } else if (x > sum.largest) {
          sum.rest = sum.rest * std::exp(sum.largest - x) + 1;
          sum.largest = x;
        } else {
          sum.rest += std::exp(x - sum.largest);
        }
      },
      [](const Sum& sum) { return sum.largest + std::log(sum.rest); });
}

Results eval_reduce_max(const NodeView& n) {
  return extreme(n, true, [](auto a, auto b) { return a > b; });
}
Results eval_reduce_min(const NodeView& n) {
  return extreme(n, false, [](auto a, auto b) { return a < b; });
}

namespace {

/// `is_before(a, b)`: the place of a is to be taken rather than that of b, which came earlier.
template <class T, class IsBefore>
Results place_of(const NodeView& n, const IsBefore& is_before) {
  struct Best {
    T value{};
    int64_t at = 0, seen = 0;
  };
  const Tensor& x = *n.node().input(0)->constant;
  std::vector<bool> reduced(x.dims.size(), false);
  reduced[static_cast<size_t>(n.axis("axis", "data"))] = true;
  const Groups groups = grouped(x, reduced, n.flag("keepdims"));
  if (groups.size == 0) return {};
  const auto step = [&](Best& best, T value) {
    if (best.seen == 0 || is_before(value, best.value)) {
      best.value = value;
      best.at = best.seen;
    }
    ++best.seen;
  };
  return folded<T>(groups, DType::Int64, Best(), step, [](const Best& best) { return best.at; });
}

template <class Order>
Results arg_extreme(const NodeView& n, const Order& order) {
  const Tensor& x = *n.node().input(0)->constant;
  if (!contains(kComputed, x.dtype) || x.dims.empty()) return {};
  const bool last = n.flag("select_last_index");
  const auto is_before = [&](auto a, auto b) {
    if (b != b) return false;  // the first NaN is taken, as numpy does
    return a != a || order(a, b) || (last && a == b);
  };
  if (is_float(x.dtype)) return place_of<double>(n, is_before);
  return is_unsigned(x.dtype) ? place_of<uint64_t>(n, is_before) : place_of<int64_t>(n, is_before);
}

}  // namespace

Results eval_arg_max(const NodeView& n) {
  return arg_extreme(n, [](auto a, auto b) { return a > b; });
}
Results eval_arg_min(const NodeView& n) {
  return arg_extreme(n, [](auto a, auto b) { return a < b; });
}

}  // namespace tonnx
