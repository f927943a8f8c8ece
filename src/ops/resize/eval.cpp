// eval.cpp - evaluation of Resize: one axis after the other.
#include <algorithm>

#include "ops/frame/eval_elements.h"
#include "ops/resize/resize.h"
#include "ops/resize/rows.h"

namespace tonnx {
namespace {

/// What an axis of the result is made of: for each of its elements those of the input, and what they count for.
struct AxisTaps {
  size_t axis;
  std::vector<ResizeTaps> elements;
  std::vector<bool> outside;  // those that are filled; empty: none
};

/// The axis in numbers, as lowering has them; nothing where some are not known.
std::optional<KnownAxis> known_axis(const NodeView& n, const ResizeRule& rule, const ResizeAxis& axis, size_t count) {
  const auto in = axis.in.constant(), out = axis.out ? axis.out->constant() : std::nullopt;
  if (!in || !out || *in == 0 || (!axis.scale && is_given(n, "scales"))) return std::nullopt;
  const double scale = axis.scale ? *axis.scale : static_cast<double>(*out) / static_cast<double>(*in);
  KnownAxis known{*in, *out, scale, axis.scale ? scale * static_cast<double>(*in) : static_cast<double>(*out)};
  if (rule.crops()) {
    const auto roi = n.find_const_floats("roi");
    if (!roi || roi->size() != 2 * count) return std::nullopt;
    known.start = (*roi)[axis.at];
    known.end = (*roi)[axis.at + count];
  }
  return known;
}

bool changes(const ResizeRule& rule, const ResizeAxis& given, const KnownAxis& axis) {
  if (rule.crops() && axis.in != 1) return axis.in != axis.out || axis.start != 0 || axis.end != 1;
  return given.scale ? *given.scale != 1.0 : axis.in != axis.out;
}

/// The result along one axis, of elements of any type.
TensorPtr picked(const Tensor& x, const AxisTaps& taps) {
  std::vector<int64_t> dims = x.dims;
  dims[taps.axis] = static_cast<int64_t>(taps.elements.size());
  const AroundAxis around = around_axis(x.dims, taps.axis);
  Elements result(x.dtype, dims);
  int64_t to = 0;
  for (int64_t o = 0; o < around.outer; ++o) {
    for (const ResizeTaps& element : taps.elements) {
      result.copy(to, x, (o * around.size + element.front().first) * around.inner, around.inner);
      to += around.inner;
    }
  }
  return result.done();
}

std::vector<double> weighted(const std::vector<double>& x, std::vector<int64_t>& dims, const AxisTaps& taps) {
  const AroundAxis around = around_axis(dims, taps.axis);
  const auto size = static_cast<int64_t>(taps.elements.size());
  dims[taps.axis] = size;
  std::vector<double> result(static_cast<size_t>(around.outer * size * around.inner));
  for_each_in_parallel(around.outer * size, around.inner * static_cast<int64_t>(taps.elements.front().size()),
                       [&](int64_t i) {
                         double* to = result.data() + i * around.inner;
                         for (const auto& [at, weight] : taps.elements[static_cast<size_t>(i % size)]) {
                           const double* from = x.data() + (i / size * around.size + at) * around.inner;
                           for (int64_t j = 0; j < around.inner; ++j) to[j] += weight * from[j];
                         }
                       });
  return result;
}

void fill_outside(std::vector<double>& x, const std::vector<int64_t>& dims, const AxisTaps& taps, double value) {
  const AroundAxis around = around_axis(dims, taps.axis);
  for (int64_t i = 0; i < around.outer * around.size; ++i) {
    if (!taps.outside[static_cast<size_t>(i % around.size)]) continue;
    std::fill_n(x.begin() + i * around.inner, around.inner, value);
  }
}

}  // namespace

Results eval_resize(const NodeView& n) {
  TensorPtr x = n.find_constant("X");
  const auto dims = static_dims(n.node().output(0));
  const ResizeRule rule = resize_rule(n);
  if (!dims || x->count() == 0 || count_of(*dims) == 0 || (rule.crops() && !is_given(n, "roi"))) return {};
  const bool is_nearest = rule.kind == ResizeRule::Kind::Nearest;
  const std::vector<ResizeAxis> axes = resize_axes(n);
  std::vector<AxisTaps> all;
  for (const ResizeAxis& given : axes) {
    const auto axis = known_axis(n, rule, given, axes.size());
    if (!axis) return {};
    if (!changes(rule, given, *axis)) continue;
    AxisTaps taps{static_cast<size_t>(given.dim), {}, {}};
    if (is_nearest) {
      for (const int64_t at : nearest_sources(rule, *axis)) taps.elements.push_back({{at, 1.0}});
    } else {
      const int64_t width = resize_tap_count(rule, *axis);
      if (!is_feasible({width, count_of(*dims)}) || !is_feasible({width, axis->out, 64})) return {};
      taps.elements = resize_taps(rule, *axis);
    }
    if (rule.crops()) {
      for (const float at : source_coordinates(rule, *axis))
        taps.outside.push_back(!(at >= 0 && at <= static_cast<float>(axis->in - 1)));
      if (std::find(taps.outside.begin(), taps.outside.end(), true) == taps.outside.end()) taps.outside.clear();
    }
    all.push_back(std::move(taps));
  }
  const bool fills = std::any_of(all.begin(), all.end(), [](const AxisTaps& taps) { return !taps.outside.empty(); });
  if (is_nearest && !fills) {
    for (const AxisTaps& taps : all) x = picked(*x, taps);
    return x;
  }
  // how the numbers between integers are rounded nobody says
  if (!is_plain_number(x->dtype) || !(is_float(x->dtype) || is_nearest)) return {};
  std::vector<double> numbers = numbers_of(*x);
  std::vector<int64_t> sizes = x->dims;
  for (const AxisTaps& taps : all) {
    numbers = weighted(numbers, sizes, taps);
    if (!taps.outside.empty()) fill_outside(numbers, sizes, taps, rule.extrapolation);
  }
  return sizes == *dims ? Results(tensor_of(x->dtype, *dims, numbers)) : Results();
}

}  // namespace tonnx
