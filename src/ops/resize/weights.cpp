// weights.cpp - coordinates and weights of a Resize whose sizes are known while converting.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/frame/kernel_type.h"
#include "ops/resize/resize.h"

namespace tonnx {
namespace {

/// Float arithmetic, as runtimes have it: in double, 3 / 0.6f would lie below 5.
float source_coordinate(const ResizeRule& rule, const KnownAxis& axis, int64_t i) {
  const auto x = static_cast<float>(i), in = static_cast<float>(axis.in), out = static_cast<float>(axis.out);
  const auto scale = static_cast<float>(axis.scale), width = static_cast<float>(axis.width);
  if (rule.transform == "align_corners") return width == 1 || axis.out == 1 ? 0 : x * (in - 1) / (width - 1);
  if (rule.transform == "asymmetric") return x / scale;
  if (rule.crops()) {
    const auto start = static_cast<float>(axis.start), end = static_cast<float>(axis.end);
    if (axis.out == 1) return 0.5F * (start + end) * (in - 1);
    return start * (in - 1) + x * (end - start) * (in - 1) / (out - 1);
  }
  if (rule.transform == "pytorch_half_pixel" && axis.out == 1) return 0;
  const float centred = (x + 0.5F) / scale - 0.5F;
  return rule.transform == "half_pixel_symmetric" ? in / 2 * (1 - out / width) + centred : centred;
}

double cubic(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? (((d - 5) * d + 8) * d - 4) * a : 0;
}

}  // namespace

std::vector<float> source_coordinates(const ResizeRule& rule, const KnownAxis& axis) {
  std::vector<float> result;
  for (int64_t i = 0; i < axis.out; ++i) result.push_back(source_coordinate(rule, axis, i));
  return result;
}

std::vector<int64_t> nearest_sources(const ResizeRule& rule, const KnownAxis& axis) {
  std::vector<int64_t> result;
  for (const float x : source_coordinates(rule, axis)) {
    float rounded = std::floor(x);
    if (rule.rounding == "ceil") rounded = std::ceil(x);
    if (rule.rounding == "round_prefer_floor") rounded = std::ceil(x - 0.5F);
    if (rule.rounding == "round_prefer_ceil") rounded = std::floor(x + 0.5F);
    if (std::isnan(rounded)) rounded = 0;
    result.push_back(static_cast<int64_t>(std::clamp(rounded, 0.0F, static_cast<float>(axis.in - 1))));
  }
  return result;
}

namespace {

/// A region may lie anywhere, and even have no place at all.
double within_reach(double x) {
  constexpr double kFar = 1e12;
  return std::isnan(x) ? 0 : std::clamp(x, -kFar, kFar);
}

double stretch_of(const ResizeRule& rule, const KnownAxis& axis) {
  return rule.antialias ? std::min(axis.scale, 1.0) : 1.0;
}

}  // namespace

int64_t resize_tap_count(const ResizeRule& rule, const KnownAxis& axis) {
  const double reach = std::ceil((rule.kind == ResizeRule::Kind::Linear ? 1 : 2) / stretch_of(rule, axis));
  return 2 * static_cast<int64_t>(std::min(reach, 1e15));
}

std::vector<ResizeTaps> resize_taps(const ResizeRule& rule, const KnownAxis& axis) {
  const bool is_linear = rule.kind == ResizeRule::Kind::Linear;
  const double stretch = stretch_of(rule, axis);
  const int64_t half = resize_tap_count(rule, axis) / 2;
  std::vector<ResizeTaps> result(static_cast<size_t>(axis.out));
  for (int64_t i = 0; i < axis.out; ++i) {
    const double x = within_reach(source_coordinate(rule, axis, i));
    const auto base = static_cast<int64_t>(std::floor(x));
    ResizeTaps& taps = result[static_cast<size_t>(i)];
    double sum = 0;
    for (int64_t tap = base + 1 - half; tap <= base + half; ++tap) {
      if (rule.exclude_outside && (tap < 0 || tap >= axis.in)) continue;
      const double distance = (x - static_cast<double>(tap)) * stretch;
      const double weight = is_linear ? std::max(0.0, 1 - std::fabs(distance)) : cubic(distance, rule.cubic_a);
      taps.emplace_back(std::clamp<int64_t>(tap, 0, axis.in - 1), weight);
      sum += weight;
    }
    const double share = (rule.exclude_outside || rule.antialias) && sum != 0 ? sum : 1;
    for (auto& [tap, weight] : taps) weight /= share;
  }
  return result;
}

TensorPtr resize_weights(const ResizeRule& rule, const KnownAxis& axis, DType dtype) {
  std::vector<double> weights(static_cast<size_t>(axis.out * axis.in));
  const std::vector<ResizeTaps> taps = resize_taps(rule, axis);
  for (int64_t i = 0; i < axis.out; ++i) {
    for (const auto& [tap, weight] : taps[static_cast<size_t>(i)])
      weights[static_cast<size_t>(i * axis.in + tap)] += weight;
  }
  return make_floats(dtype, {axis.out, axis.in}, weights);
}

Value* multiplied_along(AtenBuilder& aten, Value* x, Value* weights, int64_t dim, int64_t rank) {
  if (dim == rank - 2) return aten("matmul", weights, x);
  Value* transposed = aten("t", weights);
  if (dim == rank - 1) return aten("matmul", x, transposed);
  return aten("transpose.int", aten("matmul", aten("transpose.int", x, dim, -1), transposed), dim, -1);
}

Value* resized_known(ResizeLowering& lowering, Value* x, const KnownAxis& axis, int64_t dim) {
  AtenBuilder& aten = lowering.aten;
  const ResizeRule& rule = lowering.rule;
  if (rule.kind == ResizeRule::Kind::Nearest) {
    x = selected_along(aten, x, lowering.dtype, dim, aten.constant(make_ints(nearest_sources(rule, axis)), "index"));
  } else {
    Value* weights = aten.constant(resize_weights(rule, axis, lowering.dtype), "weights");
    x = multiplied_along(aten, x, weights, dim, lowering.rank);
  }
  if (!rule.crops()) return x;
  std::vector<double> inside;
  for (const float at : source_coordinates(rule, axis))
    inside.push_back(at >= 0 && at <= static_cast<float>(axis.in - 1));
  if (std::all_of(inside.begin(), inside.end(), [](double v) { return v != 0; })) return x;
  std::vector<int64_t> dims(static_cast<size_t>(lowering.rank - dim), 1);
  dims[0] = axis.out;
  Value* mask = aten.constant(make_floats(DType::Bool, dims, inside), "inside");
  return aten("where.ScalarOther", mask, x, rule.extrapolation);
}

}  // namespace tonnx
