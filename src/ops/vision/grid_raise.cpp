// grid_raise.cpp - PyTorch's sampling of images at given places, and windows as columns, as ONNX.
#include "base/budget.h"
#include "base/checked_int.h"
#include "ops/vision/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {

Values raise_grid_sampler(const AtenNode& n, OnnxBuilder& onnx) {
  constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t mode = n.i("interpolation_mode"), padding = n.i("padding_mode");
  require(mode >= 0 && mode < 3 && padding >= 0 && padding < 3, "mode {} and padding {}", mode, padding);
  return onnx("GridSample", {n.input("input"), n.input("grid")},
              {attr("mode", std::string(kModes[mode])), attr("padding_mode", std::string(kPaddings[padding])),
               attr("align_corners", int64_t{n.flag("align_corners")})});
}

Values raise_affine_grid(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx("AffineGrid", {n.input("theta"), onnx.list(n.int_args("size"))},
              {attr("align_corners", int64_t{n.flag("align_corners")})});
}

namespace {

/// For each place in a window and each window the number of the element in the padded input: [kernel, windows].
Value* window_places(OnnxBuilder& onnx, const IntArg& padded, int64_t kernel, int64_t dilation, int64_t stride) {
  require(kernel > 0 && stride > 0, "a kernel of {} and a stride of {}", kernel, stride);
  const int64_t extent = checked_add(checked_mul(dilation, kernel - 1), 1);
  std::vector<double> starts;
  starts.reserve(room_for<double>({kernel}));
  for (int64_t i = 0; i < kernel; ++i) starts.push_back(static_cast<double>(i * dilation));
  if (padded.value == nullptr) {
    require(padded.number >= extent, "a window of {} in {} elements", extent, padded.number);
    const int64_t count = (padded.number - extent) / stride + 1;
    std::vector<double> places;
    places.reserve(room_for<double>({kernel, count}));
    for (const double start : starts) {
      for (int64_t i = 0; i < count; ++i) places.push_back(start + static_cast<double>(i * stride));
    }
    return onnx.numbers(DType::Int64, {kernel, count}, places);
  }
  Value* windows = onnx("Range", {onnx.integer(DType::Int64, 0), onnx.scalar(onnx.sub(padded, extent - 1)),
                                  onnx.integer(DType::Int64, stride)});
  return onnx("Add", {onnx.numbers(DType::Int64, {kernel, 1}, starts), windows});
}

/// Windows as columns: rows and columns of the image are picked, one after the other.
Values raise_im2col(const AtenNode& n, OnnxBuilder& onnx) {
  const auto two = [&](const char* name) { return each(n.positives(name), 2); };
  const Ints kernel = two("kernel_size"), dilation = two("dilation"), stride = two("stride");
  const Ints padding = each(n.ints("padding"), 2);
  const Batched in = batched(onnx, n.input("self"), 2);
  Value* x = in.x;
  if (padding[0] != 0 || padding[1] != 0)
    x = onnx("Pad", {x, onnx.ints({0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]})});
  for (int64_t d = 0; d < 2; ++d) {
    const auto i = static_cast<size_t>(d);
    const IntArg padded = onnx.add(onnx.size(in.x, d + 2), checked_mul(2, padding[i]));
    x = onnx.gather(x, window_places(onnx, padded, kernel[i], dilation[i], stride[i]), 2 + 2 * d);
  }
  x = onnx.transpose(x, {0, 1, 2, 4, 3, 5});
  return onnx.reshape(x, n.output_shape());
}

}  // namespace

namespace {

constexpr AtenOp kAtenGridAten[] = {
    {.sig = "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
            "align_corners) -> Tensor",
     .types = types_grid_sampler,
     .python = "torch.grid_sampler_2d",
     .raise = raise_grid_sampler},
    {.sig = "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
            "align_corners) -> Tensor",
     .types = types_grid_sampler,
     .python = "torch.grid_sampler_3d",
     .raise = raise_grid_sampler},
    {.sig = "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
     .types = types_im2col,
     .python = "torch.ops.aten.im2col",
     .raise = raise_im2col},
};

}  // namespace

extern const OpFamily kAtenGridOps;
constinit const OpFamily kAtenGridOps{"aten_grid", {}, kAtenGridAten};

}  // namespace tonnx
