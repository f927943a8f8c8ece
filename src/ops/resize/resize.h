// resize.h - what a Resize asks for, and the numbers that follow where its sizes are known while converting.
#pragma once
#include <string>
#include <vector>

#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

/// How the elements of the result come from those of the input, the same along every axis.
struct ResizeRule {
  enum class Kind : uint8_t { Nearest, Linear, Cubic };
  Kind kind = Kind::Nearest;
  std::string transform;  // coordinate_transformation_mode
  std::string rounding;   // nearest_mode
  double cubic_a = 0;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;

  bool crops() const { return transform == "tf_crop_and_resize"; }
};

/// One axis that is resized.
struct ResizeAxis {
  size_t at;  // its place in `scales`, `sizes` and `roi`
  int64_t dim;
  Dim in;
  std::optional<Dim> out;       // nothing: only the run tells
  std::optional<double> scale;  // as given; nothing: only the run tells, or it is out / in
};

ResizeRule resize_rule(const NodeView& n);
/// All axes that `axes` names, with those that do not change.
std::vector<ResizeAxis> resize_axes(const NodeView& n);
/// Whether the input is there, and not an empty tensor that says the same as an absent one.
bool is_given(const NodeView& n, std::string_view input);

/// An axis of which all is known. `width` is the length that the scale gives, which need not be whole.
struct KnownAxis {
  int64_t in, out;
  double scale, width;
  double start = 0, end = 1;  // roi
};
/// Where each element of the result lies in the input.
std::vector<float> source_coordinates(const ResizeRule& rule, const KnownAxis& axis);
std::vector<int64_t> nearest_sources(const ResizeRule& rule, const KnownAxis& axis);
/// Elements of the input, and what each counts for, in one element of the result.
using ResizeTaps = std::vector<std::pair<int64_t, double>>;
std::vector<ResizeTaps> resize_taps(const ResizeRule& rule, const KnownAxis& axis);
/// How many they are, at most.
int64_t resize_tap_count(const ResizeRule& rule, const KnownAxis& axis);
/// out x in: what each element of the input counts for in each of the result.
TensorPtr resize_weights(const ResizeRule& rule, const KnownAxis& axis, DType dtype);

/// A Resize on its way to aten.
struct ResizeLowering {
  ResizeLowering(const OnnxNode& n, AtenBuilder& aten);

  const OnnxNode& n;
  AtenBuilder& aten;
  ResizeRule rule;
  std::vector<ResizeAxis> axes;
  int64_t rank;
  DType dtype;  // that it is computed in

  /// Whether `sizes` is fitted to the aspect ratio of the input.
  bool keeps_aspect() const;
  /// The axis in numbers, where all of them are known, and few.
  std::optional<KnownAxis> known(const ResizeAxis& axis) const;
  /// The length of the result along an axis that the types of the graph say.
  std::optional<int64_t> declared_size(const ResizeAxis& axis) const;
  /// The length of the result along an axis; nothing where the scale is only known when it runs.
  std::optional<IntArg> find_out(const ResizeAxis& axis);
  /// The elements of `sizes`.
  const IntArgs& sizes();

 private:
  std::optional<IntArgs> sizes_;
};

/// An operator that is given the sizes of its result: `F.interpolate(x, size=(8, 8))`.
std::string emit_upsample(const Emission& e);

/// As one F.interpolate, where that has the same meaning; null otherwise.
Value* interpolated(ResizeLowering& lowering, const std::vector<ResizeAxis>& changed);
/// Along one axis, with numbers that are known while converting, or only when it runs.
Value* resized_known(ResizeLowering& lowering, Value* x, const KnownAxis& axis, int64_t dim);
Value* resized_at_run_time(ResizeLowering& lowering, Value* x, const ResizeAxis& axis);
/// The product with a matrix of weights along a dimension.
Value* multiplied_along(AtenBuilder& aten, Value* x, Value* weights, int64_t dim, int64_t rank);

}  // namespace tonnx
