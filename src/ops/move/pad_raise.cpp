// pad_raise.cpp - PyTorch's paddings, and shuffles of pixels and channels, as ONNX.
#include <algorithm>
#include <cstdlib>

#include "base/budget.h"
#include "ops/frame/aten_types.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

/// PyTorch lists the last dimension first, before and after; ONNX all that comes before, then all after.
Value* onnx_pads(const AtenNode& n, OnnxBuilder& onnx, const IntArgs& pad) {
  const auto rank = static_cast<size_t>(onnx.rank(n.input("self")));
  const auto own_rank = static_cast<size_t>(n.rank("self"));
  require(pad.size() % 2 == 0 && pad.size() / 2 <= own_rank, "{} sizes of padding for {} dimensions", pad.size(),
          own_rank);
  IntArgs pads(2 * rank, IntArg(0));
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    pads[own_rank - 1 - i] = pad[2 * i];
    pads[rank + own_rank - 1 - i] = pad[2 * i + 1];
  }
  return onnx.list(pads);
}

bool is_nothing(const IntArgs& pad) {
  return std::all_of(pad.begin(), pad.end(), [](const IntArg& size) { return size.is(0); });
}

/// Where one end is cut and the other grows, the one grows by what PyTorch had before it cut.
Value* cut_and_padded(const AtenNode& n, OnnxBuilder& onnx, const IntArgs& pad, bool reflects) {
  Value* x = n.input("self");
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t axis = n.rank("self") - 1 - static_cast<int64_t>(i);
    const auto size = onnx.shape(x)[static_cast<size_t>(axis)].constant();
    if (!size || pad[2 * i].value || pad[2 * i + 1].value) n.cannot("padding of a negative size, of an unknown size");
    require(*size >= 1, "padding around nothing");
    const int64_t begin = checked_sub(0, pad[2 * i].number), end = checked_add(*size, pad[2 * i + 1].number);
    std::vector<int64_t> places;
    places.reserve(room_for<int64_t>({std::max<int64_t>(checked_sub(end, begin), 0)}));
    for (int64_t at = begin; at < end; ++at) {
      const int64_t mirrored = at < 0 ? -at : at >= *size ? 2 * (*size - 1) - at : at;
      places.push_back(std::clamp<int64_t>(reflects ? mirrored : at, 0, std::max<int64_t>(*size - 1, 0)));
    }
    if (!pad[2 * i].is(0) || !pad[2 * i + 1].is(0)) x = onnx.gather(x, onnx.ints(places), axis);
  }
  return x;
}

Value* padded(const AtenNode& n, OnnxBuilder& onnx, const IntArgs& pad, const char* mode) {
  Value* x = n.input("self");
  if (is_nothing(pad)) return x;
  if (std::any_of(pad.begin(), pad.end(), [](const IntArg& size) { return !size.value && size.number < 0; }))
    return cut_and_padded(n, onnx, pad, std::string_view(mode) == "reflect");
  return in_kernel_dtype(onnx, "Pad", {x}, {onnx_pads(n, onnx, pad)}, {{"mode", std::string(mode)}});
}

Value* filled_around(const AtenNode& n, OnnxBuilder& onnx, const IntArgs& pad) {
  n.ignore({"value"});
  Value* x = n.input("self");
  if (is_nothing(pad)) return x;
  const DType dtype = kernel_dtype("Pad", onnx.dtype(x));
  Value* value = n.has("value") ? n.input_as("value", onnx.dtype(x)) : onnx.number(dtype, 0);
  return in_kernel_dtype(onnx, "Pad", {x}, {onnx_pads(n, onnx, pad), onnx.cast(value, dtype)});
}

/// What lies at the other end comes around.
Value* wrapped(const AtenNode& n, OnnxBuilder& onnx, const IntArgs& pad) {
  Value* x = n.input("self");
  const int64_t rank = n.rank("self");
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t axis = rank - 1 - static_cast<int64_t>(i);
    const IntArg before = pad[2 * i], after = pad[2 * i + 1];
    if (before.value || after.value) n.cannot("circular padding of a size that is not known");
    const int64_t cut_before = std::max<int64_t>(-before.number, 0), cut_after = std::max<int64_t>(-after.number, 0);
    Value* middle = onnx.slice(x, axis, cut_before, cut_after == 0 ? kEnd : -cut_after);
    // what is cut away at one end does not come around to the other
    std::vector<Value*> parts;
    if (before.number > 0)
      parts.push_back(onnx.slice(x, axis, -before.number - cut_after, cut_after == 0 ? kEnd : -cut_after));
    parts.push_back(middle);
    if (after.number > 0) parts.push_back(onnx.slice(x, axis, cut_before, cut_before + after.number));
    x = onnx.concat(parts, axis);
  }
  return x;
}

/// An order of the last axes, with `lead` others in front that stay.
std::vector<int64_t> behind(size_t lead, std::initializer_list<int64_t> order) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < lead; ++i) result.push_back(static_cast<int64_t>(i));
  for (const int64_t axis : order) result.push_back(axis + static_cast<int64_t>(lead));
  return result;
}

}  // namespace

Values raise_constant_pad(const AtenNode& n, OnnxBuilder& onnx) { return filled_around(n, onnx, n.int_args("pad")); }

Values raise_pad(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string mode = n.s("mode");
  const IntArgs pad = n.int_args("pad");
  if (mode == "constant") return filled_around(n, onnx, pad);
  n.ignore({"value"});
  if (mode == "reflect") return padded(n, onnx, pad, "reflect");
  if (mode == "replicate") return padded(n, onnx, pad, "edge");
  if (mode == "circular") return wrapped(n, onnx, pad);
  n.cannot("padding of the mode '{}'", mode);
}

Values raise_pixel_shuffle(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t factor = n.positive("upscale_factor"), rank = n.rank("self");
  Value* x = n.input("self");
  const DType dtype = onnx.dtype(x);
  if (rank == 4 && (dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Float16))
    return onnx("DepthToSpace", {x}, {{"blocksize", factor}, {"mode", std::string("CRD")}});
  const Shape &in = n.shape("self"), &out = n.output_shape();
  Shape split = out.without_last(3);
  const size_t lead = split.size();
  split = in.first(static_cast<int64_t>(lead));
  for (const Dim& dim : Shape{out[lead], factor, factor, in[lead + 1], in[lead + 2]}) split.push_back(dim);
  return onnx.reshape(onnx.transpose(onnx.reshape(x, split), behind(lead, {0, 3, 1, 4, 2})), out);
}

Values raise_pixel_unshuffle(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t factor = n.positive("downscale_factor");
  const Shape &in = n.shape("self"), &out = n.output_shape();
  Shape split = out.without_last(3);
  const size_t lead = split.size();
  split = in.first(static_cast<int64_t>(lead));
  for (const Dim& dim : Shape{in[lead], out[lead + 1], factor, out[lead + 2], factor}) split.push_back(dim);
  return onnx.reshape(onnx.transpose(onnx.reshape(n.input("self"), split), behind(lead, {0, 2, 4, 1, 3})), out);
}

namespace {

template <FixedText Mode>
Values raise_named_pad(const AtenNode& n, OnnxBuilder& onnx) {
  return padded(n, onnx, n.int_args("padding"), Mode.value);
}

Values raise_circular_pad(const AtenNode& n, OnnxBuilder& onnx) { return wrapped(n, onnx, n.int_args("pad")); }

Values raise_channel_shuffle(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t groups = n.i("groups");
  const Shape& shape = n.shape("self");
  require(groups > 0 && shape.size() > 2, "channel_shuffle of {} dimensions in {} groups", shape.size(), groups);
  Shape split = shape;
  split[1] = floor_div(shape[1], Dim(groups));
  split.insert_at(1, Dim(groups));
  Value* x = onnx.reshape(n.input("self"), split);
  return onnx.reshape(onnx.swap_axes(x, 1, 2), shape);
}

constexpr AtenOp kAtenPadAten[] = {
    {.sig = "aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
     .types = types_padding,
     .python = "torch.ops.aten.reflection_pad1d",
     .raise = raise_named_pad<"reflect">},
    {.sig = "aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
     .types = types_padding,
     .layout = Layout::Channels,
     .python = "torch.ops.aten.reflection_pad2d",
     .raise = raise_named_pad<"reflect">},
    {.sig = "aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
     .types = types_padding,
     .python = "torch.ops.aten.reflection_pad3d",
     .raise = raise_named_pad<"reflect">},
    {.sig = "aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
     .types = types_padding,
     .python = "torch.ops.aten.replication_pad1d",
     .raise = raise_named_pad<"edge">},
    {.sig = "aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
     .types = types_padding,
     .layout = Layout::Channels,
     .python = "torch.ops.aten.replication_pad2d",
     .raise = raise_named_pad<"edge">},
    {.sig = "aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
     .types = types_padding,
     .python = "torch.ops.aten.replication_pad3d",
     .raise = raise_named_pad<"edge">},
    {.sig = "aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
     .types = types_pad,
     .python = "torch.ops.aten._pad_circular",
     .raise = raise_circular_pad},
    {.sig = "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Channels,
     .python = "torch.channel_shuffle",
     .raise = raise_channel_shuffle},
    {.sig = "aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor",
     .types = types_as_self,
     .python = "torch.native_channel_shuffle",
     .raise = raise_channel_shuffle},
};

}  // namespace

extern const OpFamily kAtenPadOps;
constinit const OpFamily kAtenPadOps{"aten_pad", {}, kAtenPadAten};

}  // namespace tonnx
