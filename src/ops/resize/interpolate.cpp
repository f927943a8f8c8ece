// interpolate.cpp - which Resize is one call of F.interpolate.
#include <algorithm>
#include <cmath>

#include "ops/frame/emission.h"
#include "ops/resize/resize.h"

namespace tonnx {
namespace {

using Kind = ResizeRule::Kind;

/// The number that the text of a scale in generated code gives.
double as_written(double scale) { return std::stod(python_float(scale)); }

/// Whether the scale gives a whole number of elements, so that it is also the ratio of the sizes.
bool is_exact(const ResizeLowering& lowering, const ResizeAxis& axis) {
  if (!axis.scale) return !lowering.keeps_aspect() && is_given(lowering.n, "sizes");
  if (*axis.scale == std::floor(*axis.scale)) return true;
  const auto in = axis.in.constant(), out = axis.out ? axis.out->constant() : std::nullopt;
  return in && out && static_cast<double>(*in) * *axis.scale == static_cast<double>(*out);
}

/// PyTorch's own arithmetic for `nearest` and `nearest-exact`.
bool same_sources(const ResizeLowering& lowering, const KnownAxis& axis, bool by_scale, bool exact) {
  const double written = as_written(axis.scale);
  if (by_scale && static_cast<int64_t>(static_cast<double>(axis.in) * written) != axis.out) return false;
  const float ratio =
      by_scale ? static_cast<float>(1.0 / written) : static_cast<float>(axis.in) / static_cast<float>(axis.out);
  const std::vector<int64_t> sources = nearest_sources(lowering.rule, axis);
  for (int64_t i = 0; i < axis.out; ++i) {
    const float x = std::floor((static_cast<float>(i) + (exact ? 0.5F : 0.0F)) * ratio);
    if (std::min(static_cast<int64_t>(x), axis.in - 1) != sources[static_cast<size_t>(i)]) return false;
  }
  return true;
}

bool is_half_pixel(const ResizeLowering& lowering, const ResizeAxis& axis) {
  const std::string& transform = lowering.rule.transform;
  if (transform == "half_pixel") return true;
  // PyTorch does not know the exception that ONNX makes for a result of one element. Where the size is not known it is
  // taken to be larger: PyTorch's own exporter writes this transform for every F.interpolate.
  if (transform == "pytorch_half_pixel") return !axis.out || !axis.out->is(1);
  return transform == "half_pixel_symmetric" && is_exact(lowering, axis);
}

bool is_nearest(const ResizeLowering& lowering, const ResizeAxis& axis, bool by_scale, bool exact) {
  if (const auto known = lowering.known(axis)) return same_sources(lowering, *known, by_scale, exact);
  const std::string& rounding = lowering.rule.rounding;
  const bool rounds = rounding == "round_prefer_floor" || rounding == "round_prefer_ceil";
  if (exact) return is_half_pixel(lowering, axis) && rounding == "round_prefer_ceil";
  const bool is_multiple = axis.scale && *axis.scale >= 1 && *axis.scale == std::floor(*axis.scale);
  if (is_half_pixel(lowering, axis)) return is_multiple && rounds;
  if (lowering.rule.transform != "asymmetric") return false;
  return rounding == "floor" || (rounding == "round_prefer_floor" && is_multiple && *axis.scale <= 2);
}

/// The name that F.interpolate has for it; empty where it has none.
std::string nearest_mode(const ResizeLowering& lowering, const std::vector<ResizeAxis>& changed, bool by_scale) {
  if (!is_float(lowering.dtype) && lowering.dtype != DType::UInt8) return "";
  for (const bool exact : {false, true}) {
    const bool same = std::all_of(changed.begin(), changed.end(),
                                  [&](const ResizeAxis& axis) { return is_nearest(lowering, axis, by_scale, exact); });
    if (same) return exact ? "nearest_exact" : "nearest";
  }
  return "";
}

/// Linear and cubic: whether the samples lie where PyTorch has them.
bool samples_alike(const ResizeLowering& lowering, const ResizeAxis& axis, bool by_scale) {
  const auto in = axis.in.constant(), out = axis.out ? axis.out->constant() : std::nullopt;
  if (by_scale && in && out && static_cast<int64_t>(static_cast<double>(*in) * as_written(*axis.scale)) != *out)
    return false;
  if (lowering.keeps_aspect() && !is_exact(lowering, axis)) return false;
  if (lowering.rule.transform == "align_corners") return is_exact(lowering, axis);
  return is_half_pixel(lowering, axis);
}

bool may_shrink(const ResizeAxis& axis) {
  if (axis.scale) return *axis.scale < 1;
  const auto in = axis.in.constant(), out = axis.out ? axis.out->constant() : std::nullopt;
  return !in || !out || *out < *in;
}

std::string smooth_mode(const ResizeLowering& lowering, const std::vector<ResizeAxis>& changed, bool by_scale) {
  const ResizeRule& rule = lowering.rule;
  const bool alike = std::all_of(changed.begin(), changed.end(),
                                 [&](const ResizeAxis& axis) { return samples_alike(lowering, axis, by_scale); });
  if (!alike) return "";
  // the filter of antialias is only wider where the result is smaller; PyTorch's leaves out what lies outside
  const bool antialias = rule.antialias && std::any_of(changed.begin(), changed.end(), may_shrink);
  if (antialias && (!rule.exclude_outside || lowering.rank != 4 || rule.transform == "align_corners")) return "";
  if (rule.kind == Kind::Linear) {
    if (antialias) return "bilinear_aa";
    return lowering.rank == 3 ? "linear" : lowering.rank == 4 ? "bilinear" : "trilinear";
  }
  if (lowering.rank != 4) return "";
  if (antialias) return rule.cubic_a == -0.5 ? "bicubic_aa" : "";
  return rule.cubic_a == -0.75 && !rule.exclude_outside ? "bicubic" : "";
}

/// The dimensions as F.interpolate wants them: two that do not change, then the others. Empty where that cannot be.
std::vector<int64_t> interpolate_order(const ResizeLowering& lowering, const std::vector<ResizeAxis>& changed) {
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < lowering.rank; ++d) {
    const bool changes =
        std::any_of(changed.begin(), changed.end(), [&](const ResizeAxis& axis) { return axis.dim == d; });
    if (!changes) kept.push_back(d);
  }
  if (lowering.rank < 3 || lowering.rank > 5 || kept.size() < 2) return {};
  std::vector<int64_t> order{kept[0], kept[1] == 1 ? 1 : kept.back()};
  for (int64_t d = 0; d < lowering.rank; ++d) {
    if (d != order[0] && d != order[1]) order.push_back(d);
  }
  return order;
}

Value* permuted(AtenBuilder& aten, Value* x, const std::vector<int64_t>& order) {
  return std::is_sorted(order.begin(), order.end()) ? x : aten("permute", x, order);
}

}  // namespace

Value* interpolated(ResizeLowering& lowering, const std::vector<ResizeAxis>& changed) {
  const std::vector<int64_t> order = interpolate_order(lowering, changed);
  const bool by_scale = is_given(lowering.n, "scales");
  if (order.empty() || lowering.rule.crops()) return nullptr;
  if (by_scale && std::any_of(changed.begin(), changed.end(), [](const ResizeAxis& axis) { return !axis.scale; }))
    return nullptr;
  const bool nearest = lowering.rule.kind == Kind::Nearest;
  const std::string mode =
      nearest ? nearest_mode(lowering, changed, by_scale) : smooth_mode(lowering, changed, by_scale);
  if (mode.empty()) return nullptr;

  std::vector<double> scales;
  IntArgs sizes;
  for (size_t i = 2; i < order.size(); ++i) {
    const auto axis =
        std::find_if(changed.begin(), changed.end(), [&](const ResizeAxis& a) { return a.dim == order[i]; });
    const bool changes = axis != changed.end();
    if (by_scale) {
      scales.push_back(changes ? *axis->scale : 1.0);
    } else if (!changes) {
      sizes.push_back(lowering.n.size("X", order[i]));
    } else if (const auto out = lowering.find_out(*axis)) {
      sizes.push_back(*out);
    } else {
      return nullptr;
    }
  }
  AtenBuilder& aten = lowering.aten;
  Value* x = permuted(aten, lowering.n.input("X"), order);
  const Arg size = by_scale ? Arg(nullptr) : Arg(sizes), factors = by_scale ? Arg(scales) : Arg(nullptr);
  const std::string dims = std::to_string(lowering.rank - 2) + "d";
  if (nearest) {
    x = aten((mode == "nearest" ? "upsample_nearest" : "_upsample_nearest_exact") + dims + ".vec", x, size, factors);
  } else {
    const bool antialias = mode.ends_with("_aa");
    const std::string op =
        antialias ? "_upsample_" + mode.substr(0, mode.size() - 3) + dims + "_aa" : "upsample_" + mode + dims;
    x = aten(op + ".vec", x, size, lowering.rule.transform == "align_corners", factors);
  }
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return permuted(aten, x, back);
}

}  // namespace tonnx
