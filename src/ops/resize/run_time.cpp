// run_time.cpp - a Resize along one axis, whose sizes, scale or region only the run tells.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/frame/kernel_type.h"
#include "ops/resize/resize.h"

namespace tonnx {
namespace {

/// A number that may be known, or be a Python number or a tensor of one element when the code runs.
struct Amount {
  std::optional<double> number;
  Value* value = nullptr;

  bool is_tensor() const { return value != nullptr && value->type.is_tensor(); }
  operator Arg() const { return number ? Arg(*number) : Arg(value); }  // NOLINT
};

class RunTimeAxis {
 public:
  RunTimeAxis(ResizeLowering& lowering, const ResizeAxis& axis)
      : lowering_(lowering),
        n_(lowering.n),
        aten_(lowering.aten),
        rule_(lowering.rule),
        axis_(axis),
        in_(n_.size("X", axis.dim)),
        out_(find_out()),
        scale_(find_scale()) {}

  const IntArg& in() const { return in_; }
  const IntArg& out() const { return out_; }

  Value* coordinates() {
    const bool aligns = rule_.transform == "align_corners";
    if (out_.is(1) && (aligns || rule_.transform == "pytorch_half_pixel")) return aten_("zeros", IntArgs{1});
    Value* x = aten_("arange", out_);
    if (aligns) return divided(multiplied(x, aten_.sub(in_, 1)), last_of_width());
    if (rule_.transform == "asymmetric") return divided(x, scale_);
    if (rule_.crops()) return cropped(x);
    x = aten_("sub.Scalar", divided(aten_("add.Scalar", x, 0.5), scale_), 0.5);
    // a single element comes from the first one: times 0 there, and times 1 elsewhere
    if (rule_.transform == "pytorch_half_pixel" && out_.value) x = multiplied(x, aten_.min(aten_.sub(out_, 1), 1));
    const bool is_rounded = is_given(n_, "scales") || lowering_.keeps_aspect();
    return rule_.transform == "half_pixel_symmetric" && is_rounded ? centred(x) : x;
  }

  Value* nearest(Value* x) {
    if (rule_.rounding == "round_prefer_floor") x = aten_("ceil", aten_("sub.Scalar", x, 0.5));
    if (rule_.rounding == "round_prefer_ceil") x = aten_("floor", aten_("add.Scalar", x, 0.5));
    if (rule_.rounding == "floor") x = aten_("floor", x);
    if (rule_.rounding == "ceil") x = aten_("ceil", x);
    return aten_("to.dtype", aten_("clamp", x, 0, aten_.sub(in_, 1)), DType::Int64);
  }

  Value* weights(Value* x) {
    const bool is_linear = rule_.kind == ResizeRule::Kind::Linear;
    if (!rule_.antialias && is_linear) {  // outside of the input counts as its edge
      Value* inside = aten_("clamp", x, 0, aten_.sub(in_, 1));
      return hat(aten_("sub.Tensor", aten_("unsqueeze", inside, 1), aten_("arange", in_)));
    }
    const Amount stretch = find_stretch();
    const IntArg half = reach(stretch, is_linear ? 1 : 2);
    Value* offsets = aten_("arange.start_step", aten_.sub(1, half), aten_.add(half, 1));
    x = aten_("unsqueeze", x, 1);
    Value* taps = aten_("add.Tensor", aten_("floor", x), offsets);
    Value* distance = aten_("sub.Tensor", x, taps);
    if (stretch.number != 1.0) distance = multiplied(distance, stretch);
    Value* weights = is_linear ? hat(distance) : cubic(aten_("abs", distance));
    if (rule_.exclude_outside) {
      Value* inside = aten_("bitwise_and.Tensor", aten_("ge.Scalar", taps, 0), aten_("lt.Scalar", taps, in_));
      weights = aten_("mul.Tensor", weights, inside);
    }
    if (rule_.exclude_outside || rule_.antialias) {
      weights = aten_("div.Tensor", weights, aten_("sum.dim_IntList", weights, IntArgs{1}, true));
    }
    taps = aten_("to.dtype", aten_("clamp", taps, 0, aten_.sub(in_, 1)), DType::Int64);
    return aten_("scatter_add", aten_("zeros", IntArgs{out_, in_}), 1, taps, weights);
  }

  Value* is_inside(Value* x) {
    return aten_("bitwise_and.Tensor", aten_("ge.Scalar", x, 0), aten_("le.Scalar", x, aten_.sub(in_, 1)));
  }

 private:
  Value* divided(Value* x, const Amount& by) { return aten_(by.is_tensor() ? "div.Tensor" : "div.Scalar", x, by); }
  Value* multiplied(Value* x, const IntArg& by) { return by.is(1) ? x : aten_("mul.Scalar", x, by); }
  Value* multiplied(Value* x, const Amount& by) { return aten_(by.is_tensor() ? "mul.Tensor" : "mul.Scalar", x, by); }
  Value* element(std::string_view input, size_t i) {
    return aten_("select.int", n_.input(input), 0, static_cast<int64_t>(i));
  }

  /// The scale that fits all axes: the least or the greatest of those that the sizes give.
  Amount shared_scale() {
    const IntArgs& sizes = lowering_.sizes();
    const char* choose =
        n_.s("keep_aspect_ratio_policy") == "not_larger" ? "torch::sym_min.float" : "torch::sym_max.float";
    Value* scale = nullptr;
    for (const ResizeAxis& axis : lowering_.axes) {
      Value* each = aten_("_operator::truediv", sizes[axis.at], n_.size("X", axis.dim));
      scale = scale ? aten_(choose, scale, each) : each;
    }
    return {std::nullopt, scale};
  }

  IntArg find_out() {
    if (const auto found = lowering_.find_out(axis_)) return *found;
    if (lowering_.keeps_aspect()) {
      Value* width = aten_("_operator::mul.float", shared_scale(), in_);
      return aten_("math::floor", aten_("_operator::add.float", width, 0.5));
    }
    return aten_("tonnx::item", aten_("to.dtype", aten_("mul.Scalar", element("scales", axis_.at), in_), DType::Int64));
  }

  Amount find_scale() {
    if (axis_.scale) return {axis_.scale, nullptr};
    if (is_given(n_, "scales")) return {std::nullopt, element("scales", axis_.at)};
    if (lowering_.keeps_aspect()) return shared_scale();
    if (!in_.value && !out_.value) return {static_cast<double>(out_.number) / static_cast<double>(in_.number), nullptr};
    return {std::nullopt, aten_("_operator::truediv", out_, in_)};
  }

  Amount last_of_out() {
    const IntArg last = aten_.max(aten_.sub(out_, 1), 1);
    return last.value ? Amount{std::nullopt, last.value} : Amount{static_cast<double>(last.number), nullptr};
  }

  /// The length that the scale gives, less one; of use only where it is at least 1.
  Amount last_of_width() {
    if (is_given(n_, "sizes") && !lowering_.keeps_aspect()) return last_of_out();
    if (scale_.is_tensor()) {
      return {std::nullopt, aten_("clamp", aten_("sub.Scalar", aten_("mul.Scalar", scale_.value, in_), 1), 1)};
    }
    if (scale_.number && !in_.value)
      return {std::max(*scale_.number * static_cast<double>(in_.number) - 1, 1.0), nullptr};
    Value* width = aten_("_operator::mul.float", in_, scale_);
    return {std::nullopt, aten_("torch::sym_max.float", aten_("_operator::sub.float", width, 1), 1.0)};
  }

  Value* cropped(Value* x) {
    const size_t count = lowering_.axes.size();
    Value* start = element("roi", axis_.at);
    Value* end = element("roi", axis_.at + count);
    const IntArg last = aten_.sub(in_, 1);
    if (out_.is(1)) {
      Value* middle = aten_("mul.Scalar", aten_("add.Tensor", start, end), 0.5);
      return aten_("reshape", multiplied(middle, last), IntArgs{1});
    }
    Value* span = multiplied(aten_("sub.Tensor", end, start), last);
    x = divided(aten_("mul.Tensor", x, span), last_of_out());
    return aten_("add.Tensor", x, multiplied(start, last));
  }

  /// Moves by half of what the whole number of elements leaves over.
  Value* centred(Value* x) {
    if (scale_.is_tensor()) {
      Value* used = aten_("mul.Scalar", aten_("reciprocal", scale_.value), out_);
      return aten_("add.Tensor", x, aten_("div.Scalar", aten_("rsub.Scalar", used, in_), 2));
    }
    Value* left = aten_("_operator::sub.float", in_, aten_("_operator::truediv", out_, scale_));
    return aten_("add.Scalar", x, aten_("_operator::truediv", left, 2));
  }

  Amount find_stretch() {
    if (!rule_.antialias) return {1.0, nullptr};
    if (scale_.number) return {std::min(*scale_.number, 1.0), nullptr};
    if (scale_.is_tensor()) return {std::nullopt, aten_("clamp", scale_.value, Kw{"max", 1})};
    return {std::nullopt, aten_("torch::sym_min.float", scale_.value, 1.0)};
  }

  /// How many elements to each side count.
  IntArg reach(const Amount& stretch, int64_t support) {
    if (stretch.number) {
      const double count = std::ceil(static_cast<double>(support) / *stretch.number);
      require(count < 1e9, "a scale of {}", *stretch.number);
      return static_cast<int64_t>(count);
    }
    if (!stretch.is_tensor()) return aten_("math::ceil", aten_("_operator::truediv", support, stretch));
    Value* count = multiplied(aten_("reciprocal", stretch.value), IntArg(support));
    return aten_("tonnx::item", aten_("to.dtype", aten_("ceil", count), DType::Int64));
  }

  Value* hat(Value* distance) { return aten_("relu", aten_("rsub.Scalar", aten_("abs", distance), 1)); }

  Value* cubic(Value* d) {
    const double a = rule_.cubic_a;
    Value* near = aten_("mul.Tensor", aten_("sub.Scalar", aten_("mul.Scalar", d, a + 2), a + 3), aten_("square", d));
    near = aten_("add.Scalar", near, 1);
    Value* far = aten_("add.Scalar", aten_("mul.Tensor", aten_("sub.Scalar", d, 5), d), 8);
    far = aten_("mul.Scalar", aten_("sub.Scalar", aten_("mul.Tensor", far, d), 4), a);
    far = aten_("where.ScalarOther", aten_("lt.Scalar", d, 2), far, 0.0);
    return aten_("where.self", aten_("le.Scalar", d, 1), near, far);
  }

  ResizeLowering& lowering_;
  const OnnxNode& n_;
  AtenBuilder& aten_;
  const ResizeRule& rule_;
  const ResizeAxis& axis_;
  IntArg in_;
  IntArg out_;
  Amount scale_;
};

}  // namespace

Value* resized_at_run_time(ResizeLowering& lowering, Value* x, const ResizeAxis& axis) {
  AtenBuilder& aten = lowering.aten;
  RunTimeAxis run(lowering, axis);
  Value* at = run.coordinates();
  Value* y = nullptr;
  if (lowering.rule.kind == ResizeRule::Kind::Nearest) {
    y = selected_along(aten, x, lowering.dtype, axis.dim, run.nearest(at));
  } else {
    Value* weights = run.weights(at);
    if (lowering.dtype != DType::Float32) weights = aten("to.dtype", weights, lowering.dtype);
    y = multiplied_along(aten, x, weights, axis.dim, lowering.rank);
  }
  if (!lowering.rule.crops()) return y;
  Value* inside = run.is_inside(at);
  if (axis.dim != lowering.rank - 1) {
    IntArgs sizes(static_cast<size_t>(lowering.rank - axis.dim), 1);
    sizes[0] = -1;
    inside = aten("reshape", inside, sizes);
  }
  return aten("where.ScalarOther", inside, y, lowering.rule.extrapolation);
}

}  // namespace tonnx
