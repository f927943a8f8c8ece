// roi.cpp - parts of feature maps brought to one size: RoiAlign, MaxRoiPool.
#include <cmath>

#include "base/budget.h"
#include "base/error.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/pool/rows.h"

namespace tonnx {
namespace {

constexpr int64_t kLargestPool = 1 << 16;

DType places_in(DType dtype) { return dtype == DType::Float64 ? dtype : DType::Float32; }

int64_t positive(int64_t number, const char* what) {
  require(number >= 1 && number <= kLargestPool, "{} is {}", what, number);
  return number;
}

void set_pooled(InferNode& n, int64_t height, int64_t width) {
  const Shape *x = n.find_shape("X"), *rois = n.find_shape("rois");
  require(!x || x->size() == 4, "the input has {} dimensions where it needs four", x ? x->size() : 0);
  require(!rois || rois->size() == 2, "the regions have {} dimensions where they need two", rois ? rois->size() : 0);
  n.set(0, n.dtype("X"), Shape{rois ? (*rois)[0] : n.fresh(), x ? (*x)[1] : n.fresh(), height, width});
}

// RoiAlign

void infer_roi_align(InferNode& n) {
  require(n.i("sampling_ratio") >= 0 && n.i("sampling_ratio") <= kLargestPool, "sampling_ratio is {}",
          n.i("sampling_ratio"));
  set_pooled(n, positive(n.i("output_height"), "output_height"), positive(n.i("output_width"), "output_width"));
}

class RoiAlign {
 public:
  RoiAlign(const OnnxNode& n, AtenBuilder& aten)
      : n_(n), aten_(aten), places_(places_in(n.dtype("X"))), samples_(n.i("sampling_ratio")), mode_(n.s("mode")) {
    require(mode_ == "avg" || mode_ == "max", "the mode is '{}'", mode_);
  }

  Value* pooled() {
    const DType dtype = n_.dtype("X");
    const std::string transform = n_.s("coordinate_transformation_mode");
    require(transform == "half_pixel" || transform == "output_half_pixel", "coordinate_transformation_mode is '{}'",
            transform);
    const bool half_pixel = transform == "half_pixel";
    Value* boxes = cast(aten_, n_.input("rois"), dtype, places_);
    if (n_.f("spatial_scale") != 1.0) boxes = aten_("mul.Scalar", boxes, n_.f("spatial_scale"));
    if (half_pixel) boxes = aten_("sub.Scalar", boxes, 0.5);
    const Values edges = aten_.list(4, "unbind.int", boxes, 1);
    Axis y{.start = edges[1], .pooled = n_.i("output_height"), .size = n_.size("X", 2)};
    Axis x{.start = edges[0], .pooled = n_.i("output_width"), .size = n_.size("X", 3)};
    for (Axis* axis : {&y, &x}) {
      Value* length = aten_("sub.Tensor", edges[axis == &y ? 3 : 2], axis->start);
      if (!half_pixel) length = aten_("clamp", length, 1);
      axis->bin = axis->pooled == 1 ? length : aten_("div.Scalar", length, axis->pooled);
    }
    if (samples_ == 0) count_samples(y, x);
    sample(y);
    sample(x);
    Value* result = reduced(y, x);
    return cast(aten_, aten_("permute", result, std::vector<int64_t>{0, 3, 1, 2}), places_, dtype);
  }

 private:
  struct Axis {
    Value* start;  // of each region
    int64_t pooled;
    IntArg size;                                          // of the feature map
    Value* bin = nullptr;                                 // the length of each bin
    Value* count = nullptr;                               // of samples in a bin of each region, where they differ
    Value *low = nullptr, *high = nullptr;                // [R, pooled, samples]: the elements on both sides
    Value *low_weight = nullptr, *high_weight = nullptr;  // nought outside
    Value* counts = nullptr;                              // whether the sample is one of the region, where they differ
  };

  /// Without a sampling_ratio each bin has as many samples as it is long; all have those of the longest, and leave some
  /// unused.
  void count_samples(Axis& y, Axis& x) {
    y.count = aten_("ceil", y.bin);
    x.count = aten_("ceil", x.bin);
    Value* both = aten_("stack", std::vector<Value*>{y.count, x.count});
    Value* most = aten_("amax", aten_("constant_pad_nd", both, IntArgs{0, 1}, 1.0));  // there may be no region
    most_ = aten_("tonnx::item", aten_("to.dtype", most, DType::Int64));
  }

  void sample(Axis& axis) {
    Value* steps = nullptr;  // from the start of the region, in bins
    if (axis.count == nullptr) {
      std::vector<double> numbers;
      numbers.reserve(room_for<double>({axis.pooled, samples_}));
      for (int64_t i = 0; i < axis.pooled * samples_; ++i) {
        numbers.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(samples_));
      }
      steps = aten_.constant(make_floats(places_, {axis.pooled, samples_}, numbers), "samples");
    } else {
      Value* count = spread(axis.count);
      Value* each = aten_("arange", IntArg(most_));
      axis.counts = aten_("lt.Tensor", each, count);
      Value* within = aten_("div.Tensor", aten_("add.Scalar", each, 0.5), count);
      steps = aten_("add.Tensor", within, aten_("unsqueeze", aten_("arange", axis.pooled), 1));
    }
    Value* at = aten_("add.Tensor", spread(axis.start), aten_("mul.Tensor", spread(axis.bin), steps));
    Value* inside = aten_("bitwise_and.Tensor", aten_("ge.Scalar", at, -1), aten_("le.Scalar", at, axis.size));
    if (axis.counts != nullptr && mode_ == "avg") inside = aten_("bitwise_and.Tensor", inside, axis.counts);
    const IntArg last = aten_.sub(axis.size, 1);
    Value* place = aten_("clamp", at, 0, last);
    Value* floor = aten_("floor", place);
    Value* beyond = aten_("sub.Tensor", place, floor);
    axis.low = aten_("to.dtype", floor, DType::Int64);
    axis.high = aten_("clamp", aten_("add.Scalar", axis.low, 1), Kw{"max", last});
    axis.low_weight = aten_("mul.Tensor", aten_("rsub.Scalar", beyond, 1), inside);
    axis.high_weight = aten_("mul.Tensor", beyond, inside);
  }

  /// [R] as [R, 1, 1]
  Value* spread(Value* x) { return aten_("reshape", x, IntArgs{-1, 1, 1}); }
  Value* as_rows(Value* x) { return aten_("unsqueeze", aten_("unsqueeze", x, -1), -1); }   // [R, p, s, 1, 1]
  Value* as_columns(Value* x) { return aten_("unsqueeze", aten_("unsqueeze", x, 1), 1); }  // [R, 1, 1, p, s]

  /// [R, height, width, C]
  Value* reduced(const Axis& y, const Axis& x) {
    Value* features = cast(aten_, n_.input("X"), n_.dtype("X"), places_);
    Value* batch = aten_("reshape", n_.input("batch_indices"), IntArgs{-1, 1, 1, 1, 1});
    Value* result = nullptr;
    Value *x_low = as_columns(x.low), *x_high = as_columns(x.high);
    Value *x_low_weight = as_columns(x.low_weight), *x_high_weight = as_columns(x.high_weight);
    for (const bool lower : {true, false}) {
      Value* row = as_rows(lower ? y.low : y.high);
      Value* row_weight = as_rows(lower ? y.low_weight : y.high_weight);
      for (const bool left : {true, false}) {
        Value* weight = aten_("mul.Tensor", row_weight, left ? x_low_weight : x_high_weight);
        Value* taken = aten_("index.Tensor", features, std::vector<Value*>{batch, nullptr, row, left ? x_low : x_high});
        Value* term = aten_("mul.Tensor", taken, aten_("unsqueeze", weight, -1));
        // the greatest of the four weighted neighbours, not of their sums: that is how it is defined
        const char* join = mode_ == "avg" ? "add.Tensor" : "maximum";
        result = result ? aten_(join, result, term) : term;
      }
    }
    const std::vector<int64_t> samples{2, 4};
    if (y.count == nullptr) return aten_(mode_ == "avg" ? "mean.dim" : "amax", result, samples);
    if (mode_ == "avg") {
      Value* count = aten_("clamp", aten_("mul.Tensor", y.count, x.count), 1);
      return aten_("div.Tensor", aten_("sum.dim_IntList", result, samples),
                   aten_("reshape", count, IntArgs{-1, 1, 1, 1}));
    }
    Value* counts = aten_("bitwise_and.Tensor", as_rows(y.counts), as_columns(x.counts));
    Value* least = aten_("where.ScalarOther", aten_("unsqueeze", counts, -1), result, -HUGE_VAL);
    Value* any = aten_("gt.Scalar", aten_("mul.Tensor", y.count, x.count), 0);
    return aten_("where.ScalarOther", aten_("reshape", any, IntArgs{-1, 1, 1, 1}), aten_("amax", least, samples), 0.0);
  }

  const OnnxNode& n_;
  AtenBuilder& aten_;
  DType places_;
  int64_t samples_;
  std::string mode_;
  Value* most_ = nullptr;
};

Values lower_roi_align(const OnnxNode& n, AtenBuilder& aten) { return RoiAlign(n, aten).pooled(); }

/// Opset 10 has no half pixels.
void up_roi_align_16(OnnxEdit& edit) {
  edit.node().set_attribute("coordinate_transformation_mode", std::string("output_half_pixel"), AttrType::String);
}

void down_roi_align_16(OnnxEdit& edit) {
  const Attribute* mode = edit.node().find_attribute("coordinate_transformation_mode");
  const auto* name = mode ? mode->value.get<std::string>() : nullptr;
  if (name == nullptr || *name != "output_half_pixel") edit.cannot("the older opset has no half pixels");
  drop_attribute(edit, "coordinate_transformation_mode");
}

// MaxRoiPool

std::pair<int64_t, int64_t> pooled_shape(const NodeView& n) {
  const std::vector<int64_t> sizes = n.ints("pooled_shape");
  require(sizes.size() == 2, "pooled_shape has {} numbers", sizes.size());
  return {positive(sizes[0], "the pooled height"), positive(sizes[1], "the pooled width")};
}

void infer_max_roi_pool(InferNode& n) {
  const auto [height, width] = pooled_shape(n);
  set_pooled(n, height, width);
}

/// Which elements each bin has, [R, pooled, size].
Value* bin_members(AtenBuilder& aten, Value* first, Value* last, int64_t pooled, const IntArg& size) {
  first = aten("unsqueeze", first, 1);
  Value* length = aten("clamp", aten("add.Scalar", aten("sub.Tensor", aten("unsqueeze", last, 1), first), 1), 1);
  Value* bin = pooled == 1 ? length : aten("div.Scalar", length, pooled);
  Value* start = aten("add.Tensor", aten("floor", aten("mul.Tensor", bin, aten("arange", pooled))), first);
  Value* end =
      aten("add.Tensor", aten("ceil", aten("mul.Tensor", bin, aten("arange.start_step", 1, pooled + 1))), first);
  Value* at = aten("arange", size);
  return aten("bitwise_and.Tensor", aten("ge.Tensor", at, aten("unsqueeze", start, -1)),
              aten("lt.Tensor", at, aten("unsqueeze", end, -1)));
}

Values lower_max_roi_pool(const OnnxNode& n, AtenBuilder& aten) {
  const auto [height, width] = pooled_shape(n);
  const DType dtype = n.dtype("X"), places = places_in(dtype);
  const Values columns = aten.list(5, "unbind.int", cast(aten, n.input("rois"), dtype, places), 1);
  const auto edge = [&](size_t i) {
    Value* scaled = n.f("spatial_scale") == 1.0 ? columns[i] : aten("mul.Scalar", columns[i], n.f("spatial_scale"));
    // halves away from zero, where torch.round takes the even neighbour
    return aten("trunc", aten("add.Tensor", scaled, aten("mul.Scalar", aten("sign", scaled), 0.5)));
  };
  Value* rows = bin_members(aten, edge(2), edge(4), height, n.size("X", 2));
  Value* cols = bin_members(aten, edge(1), edge(3), width, n.size("X", 3));
  Value* x = aten("index_select", n.input("X"), 0, aten("to.dtype", columns[0], DType::Int64));
  // [R, C, pooled height, H, W], then [R, C, pooled height, pooled width, W]
  Value* row_mask = aten("unsqueeze", aten("unsqueeze", rows, 1), -1);
  Value* y =
      aten("amax", aten("where.ScalarOther", row_mask, aten("unsqueeze", x, 2), -HUGE_VAL), std::vector<int64_t>{3});
  Value* column_mask = aten("unsqueeze", aten("unsqueeze", cols, 1), 1);
  y = aten("amax", aten("where.ScalarOther", column_mask, aten("unsqueeze", y, 3), -HUGE_VAL),
           std::vector<int64_t>{-1});
  Value* any = aten("bitwise_and.Tensor", aten("unsqueeze", aten("any.dim", rows, -1), -1),
                    aten("unsqueeze", aten("any.dim", cols, -1), 1));
  return aten("where.ScalarOther", aten("unsqueeze", any, 1), y, 0.0);
}

constexpr OpsetStep kRoiAlignHistory[] = {
    {.to = 16, .up = up_roi_align_16, .down = down_roi_align_16},
    {.to = 22, .adds = kBFloat16},
};
constexpr OpsetStep kRoiTypes22[] = {{.to = 22, .adds = kBFloat16}};

constexpr OnnxOp kRoiOnnx[] = {
    {.sig = "RoiAlign(T1 X, T1 rois, T2 batch_indices, *, str coordinate_transformation_mode=\"half_pixel\", str "
            "mode=\"avg\", int output_height=1, int sampling_ratio=0, int output_width=1, float spatial_scale=1.0) -> "
            "T1 Y",
     .since = 10,
     .history = kRoiAlignHistory,
     .infer = infer_roi_align,
     .eval = eval_roi_align,
     .lower = lower_roi_align},
    {.sig = "MaxRoiPool(T X, T rois, *, float spatial_scale=1.0, ints pooled_shape) -> T Y",
     .since = 1,
     .history = kRoiTypes22,
     .infer = infer_max_roi_pool,
     .eval = eval_max_roi_pool,
     .lower = lower_max_roi_pool},
};

}  // namespace

extern const OpFamily kRoiOps;
constinit const OpFamily kRoiOps{"roi", kRoiOnnx, {}};

}  // namespace tonnx
