// torchvision_raise.cpp - torchvision's own operators as ONNX.
#include <limits>

#include "ops/vision/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// The indices of the boxes that stay, the best first.
Values raise_nms(const AtenNode& n, OnnxBuilder& onnx) {
  Value* boxes = onnx.unsqueeze(n.input_as("dets", DType::Float32), {0});
  Value* scores = onnx.unsqueeze(n.input_as("scores", DType::Float32), {0, 1});
  Value* all = onnx.ints({std::numeric_limits<int32_t>::max()});
  Value* threshold = onnx.numbers(DType::Float32, {1}, {n.f("iou_threshold")});
  // rows of batch, class and box
  Value* kept = onnx("NonMaxSuppression", {boxes, scores, all, threshold});
  return onnx.gather(kept, onnx.integer(DType::Int64, 2), 1);
}

/// Rows of the image's number and four corners, as the corners and the numbers.
struct Regions {
  Value *corners, *images;
};
Regions regions_of(const AtenNode& n, OnnxBuilder& onnx) {
  Value* rois = n.input("rois");
  Value* images = onnx.gather(rois, onnx.integer(DType::Int64, 0), 1);
  return {onnx.slice(rois, 1, 1, 5), onnx.cast(images, DType::Int64)};
}

Values raise_roi_align(const AtenNode& n, OnnxBuilder& onnx) {
  const Regions regions = regions_of(n, onnx);
  return onnx(
      "RoiAlign", {n.input("input"), regions.corners, regions.images},
      {attr("coordinate_transformation_mode", std::string(n.flag("aligned") ? "half_pixel" : "output_half_pixel")),
       attr("output_height", n.i("pooled_height")), attr("output_width", n.i("pooled_width")),
       attr("sampling_ratio", std::max<int64_t>(n.i("sampling_ratio"), 0)),
       attr("spatial_scale", n.f("spatial_scale"))});
}

Values raise_roi_pool(const AtenNode& n, OnnxBuilder& onnx) {
  return {onnx("MaxRoiPool", {n.input("input"), n.input("rois")},
               {attr("pooled_shape", std::vector{n.i("pooled_height"), n.i("pooled_width")}),
                attr("spatial_scale", n.f("spatial_scale"))}),
          nullptr};
}

Values raise_deform_conv2d(const AtenNode& n, OnnxBuilder& onnx) {
  std::vector<Attribute> attributes;
  add_unless(attributes, "strides", {n.i("stride_h"), n.i("stride_w")}, 1);
  add_unless(attributes, "pads", twice({n.i("pad_h"), n.i("pad_w")}), 0);
  add_unless(attributes, "dilations", {n.i("dilation_h"), n.i("dilation_w")}, 1);
  if (n.i("groups") != 1) attributes.push_back(attr("group", n.i("groups")));
  if (n.i("offset_groups") != 1) attributes.push_back(attr("offset_group", n.i("offset_groups")));
  n.ignore({"mask"});
  return onnx("DeformConv",
              {n.input("input"), n.input("weight"), n.input("offset"), n.input("bias"),
               n.flag("use_mask") ? n.input("mask") : nullptr},
              std::move(attributes));
}

#define ROI "Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
constexpr AtenOp kAtenVisionAten[] = {
    {.sig = "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
     .types = types_nms,
     .python = "torch.ops.torchvision.nms",
     .raise = raise_nms},
    {.sig = "torchvision::roi_align(Tensor input, " ROI ", int sampling_ratio, bool aligned) -> Tensor",
     .types = types_roi,
     .python = "torch.ops.torchvision.roi_align",
     .raise = raise_roi_align},
    {.sig = "torchvision::roi_pool(Tensor input, " ROI ") -> (Tensor, Tensor)",
     .types = types_roi_pool,
     .python = "torch.ops.torchvision.roi_pool",
     .raise = raise_roi_pool},
    {.sig = "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt "
            "stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt "
            "groups, SymInt offset_groups, bool use_mask) -> Tensor",
     .types = types_deform_conv2d,
     .python = "torch.ops.torchvision.deform_conv2d",
     .raise = raise_deform_conv2d},
};
#undef ROI

}  // namespace

extern const OpFamily kAtenVisionOps;
constinit const OpFamily kAtenVisionOps{"aten_vision", {}, kAtenVisionAten};

}  // namespace tonnx
