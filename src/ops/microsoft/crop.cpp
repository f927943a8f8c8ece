// crop.cpp - parts of images brought to one size: CropAndResize of com.microsoft.
#include "base/error.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {
namespace {

void infer_crop(InferNode& n) {
  const Shape *x = n.find_shape("X"), *rois = n.find_shape("rois");
  require(x == nullptr || x->size() == 4, "the images have {} dimensions where four are needed", x ? x->size() : 0);
  require(rois == nullptr || rois->size() == 2, "the regions have {} dimensions", rois ? rois->size() : 0);
  const auto size = n.find_const_ints("crop_size");
  require(!size || (size->size() == 2 && (*size)[0] >= 1 && (*size)[1] >= 1), "crop_size is no size");
  Shape result{rois ? (*rois)[0] : n.fresh(), x ? (*x)[1] : n.fresh(), n.fresh(), n.fresh()};
  if (size) {
    result[2] = (*size)[0];
    result[3] = (*size)[1];
  }
  n.set(0, n.dtype("X"), std::move(result));
}

/// Where the samples of one direction lie, in pixels: (regions, samples). Corners are aligned.
Value* sample_points(const OnnxNode& n, AtenBuilder& aten, int64_t direction, int64_t count) {
  const IntArg last = aten.sub(n.size("X", 2 + direction), 1);
  const auto edge = [&](int64_t column) {
    return aten("mul.Scalar", aten("slice.Tensor", n.input("rois"), 1, column, column + 1), last);
  };
  Value *from = edge(direction), *to = edge(direction + 2);
  if (count == 1) return aten("mul.Scalar", aten("add.Tensor", from, to), 0.5);
  Value* step = aten("div.Scalar", aten("sub.Tensor", to, from), count - 1);
  Value* steps = aten("arange", count);
  return aten("add.Tensor", from, aten("mul.Tensor", step, steps));
}

struct Direction {
  Value* at;      // between the first pixel and the last
  Value* inside;  // whether it was there from the beginning
  int64_t other;  // the dimension to add, so that both directions broadcast: (regions, height, width)

  Value* spread(AtenBuilder& aten, Value* x) const { return aten("unsqueeze", x, other); }
};

Direction direction(const OnnxNode& n, AtenBuilder& aten, int64_t which, int64_t count) {
  Value* at = sample_points(n, aten, which, count);
  const IntArg last = aten.sub(n.size("X", 2 + which), 1);
  Value* inside = aten("bitwise_and.Tensor", aten("ge.Scalar", at, 0), aten("le.Scalar", at, last));
  return {aten("clamp", at, 0, last), inside, which == 0 ? 2 : 1};
}

Values lower_crop(const OnnxNode& n, AtenBuilder& aten) {
  const std::string mode = n.s("mode");
  require(mode == "bilinear" || mode == "nearest", "the mode is '{}'", mode);
  const std::vector<int64_t> size = n.const_ints("crop_size");
  require(size.size() == 2 && size[0] >= 1 && size[1] >= 1, "crop_size is no size");
  const Direction y = direction(n, aten, 0, size[0]), x = direction(n, aten, 1, size[1]);
  Value* images = aten("reshape", n.input("batch_indices"), IntArgs{-1, 1, 1});
  Value* by_channel = aten("permute", n.input("X"), IntArgs{0, 2, 3, 1});
  const auto pixels = [&](Value* rows, Value* columns) {
    Value* i = y.spread(aten, aten("to.dtype", rows, DType::Int64));
    Value* j = x.spread(aten, aten("to.dtype", columns, DType::Int64));
    return aten("index.Tensor", by_channel, std::vector{images, i, j});
  };
  const auto mixed = [&](Value* a, Value* b, Value* share) {
    return aten("add.Tensor", a, aten("mul.Tensor", aten("sub.Tensor", b, a), share));
  };
  Value* result = nullptr;
  if (mode == "nearest") {
    const auto nearest = [&](Value* at) { return aten("floor", aten("add.Scalar", at, 0.5)); };
    result = pixels(nearest(y.at), nearest(x.at));
  } else {
    Value *top = aten("floor", y.at), *bottom = aten("ceil", y.at);
    Value *left = aten("floor", x.at), *right = aten("ceil", x.at);
    Value* along = aten("unsqueeze", x.spread(aten, aten("sub.Tensor", x.at, left)), -1);
    Value* down = aten("unsqueeze", y.spread(aten, aten("sub.Tensor", y.at, top)), -1);
    result = mixed(mixed(pixels(top, left), pixels(top, right), along),
                   mixed(pixels(bottom, left), pixels(bottom, right), along), down);
  }
  Value* inside = aten("bitwise_and.Tensor", y.spread(aten, y.inside), x.spread(aten, x.inside));
  result = aten("where.ScalarOther", aten("unsqueeze", inside, -1), result, n.f("extrapolation_value"));
  return aten("permute", result, IntArgs{0, 3, 1, 2});
}

constexpr OnnxOp kMsCropOnnx[] = {
    {.sig = "com.microsoft::CropAndResize(T1 X, T1 rois, T2 batch_indices, T2 crop_size, *, "
            "float extrapolation_value=0.0, str mode=\"bilinear\") -> T1 Y",
     .since = 1,
     .infer = infer_crop,
     .lower = lower_crop,
     .note = "crop_size must be constant"},
};

}  // namespace

extern const OpFamily kMsCropOps;
constinit const OpFamily kMsCropOps{"ms_crop", kMsCropOnnx, {}};

}  // namespace tonnx
