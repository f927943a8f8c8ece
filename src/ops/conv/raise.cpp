// raise.cpp - PyTorch's convolutions as ONNX.
#include "base/checked_int.h"
#include "ops/conv/rows.h"
#include "ops/frame/complex_parts.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

std::vector<Attribute> conv_attributes(const AtenNode& n, int64_t spatial) {
  std::vector<Attribute> attributes;
  add_unless(attributes, "strides", each(n.positives("stride"), spatial), 1);
  add_unless(attributes, "dilations", each(n.positives("dilation"), spatial), 1);
  if (const int64_t groups = n.positive("groups"); groups != 1) attributes.push_back(attr("group", groups));
  return attributes;
}

/// Pads that keep the size: where they cannot be halved the larger part is behind.
std::vector<int64_t> same_pads(const AtenNode& n, int64_t spatial) {
  const Ints dilation = each(n.positives("dilation"), spatial);
  std::vector<int64_t> begin, end;
  for (int64_t i = 0; i < spatial; ++i) {
    const auto size = n.shape("weight").at(static_cast<size_t>(i + 2)).constant();
    if (!size) n.cannot("the size of the kernel is not known");
    const int64_t total = checked_mul(dilation[static_cast<size_t>(i)], *size - 1);
    begin.push_back(total / 2);
    end.push_back(total - total / 2);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  return begin;
}

Value* convolved(const AtenNode& n, OnnxBuilder& onnx, const char* op, std::vector<Attribute> attributes) {
  const int64_t spatial = n.rank("weight") - 2;
  if (!is_float(n.dtype("input"))) n.cannot("a convolution of {}", name_of(n.dtype("input")));
  const Batched in = batched(onnx, n.input("input"), spatial);
  return in.undo(onnx, onnx(op, {in.x, n.input("weight"), n.find_input("bias")}, std::move(attributes)));
}

}  // namespace

Values raise_conv(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = n.rank("weight") - 2;
  std::vector<Attribute> attributes = conv_attributes(n, spatial);
  if (n.node().overload == "padding") {
    const std::string padding = n.s("padding");
    if (padding == "same") add_unless(attributes, "pads", same_pads(n, spatial), 0);
  } else {
    add_unless(attributes, "pads", twice(each(n.ints("padding"), spatial)), 0);
  }
  return convolved(n, onnx, "Conv", std::move(attributes));
}

Values raise_conv_transpose(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = n.rank("weight") - 2;
  std::vector<Attribute> attributes = conv_attributes(n, spatial);
  const Ints stride = each(n.positives("stride"), spatial);
  Ints pads = twice(each(n.ints("padding"), spatial)), more = each(n.ints("output_padding"), spatial);
  for (size_t i = 0; i < more.size(); ++i) {
    // what is added behind is what was cut off there; runtimes take less than a stride of it
    int64_t& behind = pads[more.size() + i];
    const int64_t kept = more[i] >= stride[i] ? std::min(more[i], behind) : 0;
    behind -= kept;
    more[i] -= kept;
  }
  add_unless(attributes, "pads", pads, 0);
  add_unless(attributes, "output_padding", more, 0);
  return convolved(n, onnx, "ConvTranspose", std::move(attributes));
}

namespace {

Values raise_convolution(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.flag("transposed")) return raise_conv_transpose(n, onnx);
  n.ignore({"output_padding"});
  return raise_conv(n, onnx);
}

Values raise_old_convolution(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"benchmark", "deterministic", "cudnn_enabled"});
  if (n.node().overload.empty()) n.ignore({"allow_tf32"});
  return raise_convolution(n, onnx);
}

/// Time, batch and channels in this order.
Values raise_conv_tbc(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t pad = n.i("pad");
  std::vector<Attribute> attributes;
  add_unless(attributes, "pads", {pad, pad}, 0);
  Value* x = onnx.transpose(n.input("self"), {1, 2, 0});
  Value* weight = onnx.transpose(n.input("weight"), {2, 1, 0});
  return onnx.transpose(onnx("Conv", {x, weight, n.input("bias")}, std::move(attributes)), {2, 0, 1});
}

constexpr AtenOp kAtenConvAten[] = {
    {.sig = "aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str "
            "padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
     .types = types_conv,
     .low_precision = true,
     .python = "F.conv1d",
     .raise = raise_conv,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str "
            "padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
     .types = types_conv,
     .layout = Layout::Channels,
     .low_precision = true,
     .python = "F.conv2d",
     .raise = raise_conv,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str "
            "padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
     .types = types_conv,
     .layout = Layout::Channels,
     .low_precision = true,
     .python = "F.conv3d",
     .raise = raise_conv,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
            "dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
     .layout = Layout::Channels,
     .low_precision = true,
     .python = "torch.convolution",
     .raise = raise_convolution,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
            "padding, SymInt[] dilation, bool transposed, int[] output_padding, SymInt groups, bool benchmark, bool "
            "deterministic, bool cudnn_enabled) -> Tensor",
     .layout = Layout::Channels,
     .low_precision = true,
     .python = "torch.ops.aten._convolution.deprecated",
     .raise = raise_old_convolution},
    {.sig = "aten::_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
            "dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, "
            "bool cudnn_enabled, bool allow_tf32) -> Tensor",
     .layout = Layout::Channels,
     .low_precision = true,
     .python = "torch.ops.aten._convolution.default",
     .raise = raise_old_convolution},
    {.sig = "aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
     .python = "torch.conv_tbc",
     .raise = raise_conv_tbc},
};

}  // namespace

extern const OpFamily kAtenConvOps;
constinit const OpFamily kAtenConvOps{"aten_conv", {}, kAtenConvAten};

}  // namespace tonnx
