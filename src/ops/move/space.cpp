// space.cpp - blocks of the plane moved into the channels and back: DepthToSpace, SpaceToDepth.
#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/same_value.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

int64_t block_of(const NodeView& n) {
  const int64_t block = n.i("blocksize");
  require(block >= 1 && block < (int64_t{1} << 20), "blocksize is {}", block);
  return block;
}

/// Whether the channels of a block lie beside one another (CRD), as PyTorch has them.
bool is_pixel_order(const NodeView& n) {
  const std::string mode = n.s("mode");
  require(mode == "DCR" || mode == "CRD", "mode is '{}'", mode);
  return mode == "CRD";
}

const Shape* image_shape(const NodeView& n) {
  const Shape* shape = n.find_shape("input");
  require(shape == nullptr || shape->size() == 4, "the input has {} dimensions where four are needed",
          shape ? shape->size() : 0);
  return shape;
}

Dim divided(const Dim& size, int64_t by) {
  require(!size.is_constant() || *size.constant() % by == 0, "the size {} does not divide by {}", size.text(), by);
  return floor_div(size, by);
}

void infer_depth_to_space(InferNode& n) {
  const int64_t block = block_of(n);
  const Shape* x = image_shape(n);
  if (x == nullptr) return n.set(0, n.dtype("input"), std::nullopt);
  n.set(0, n.dtype("input"),
        Shape{(*x)[0], divided((*x)[1], block * block), (*x)[2] * Dim(block), (*x)[3] * Dim(block)});
}

void infer_space_to_depth(InferNode& n) {
  const int64_t block = block_of(n);
  const Shape* x = image_shape(n);
  if (x == nullptr) return n.set(0, n.dtype("input"), std::nullopt);
  n.set(0, n.dtype("input"),
        Shape{(*x)[0], (*x)[1] * Dim(block * block), divided((*x)[2], block), divided((*x)[3], block)});
}

Values lower_depth_to_space(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t block = block_of(n);
  Value* x = n.input("input");
  if (is_pixel_order(n)) return aten("pixel_shuffle", x, block);
  const IntArg batch = n.size("input", 0), height = n.size("input", 2), width = n.size("input", 3);
  const IntArg channels = aten.floor_div(n.size("input", 1), block * block);
  x = aten("reshape", x, IntArgs{batch, block, block, channels, height, width});
  x = aten("permute", x, std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  return aten("reshape", x, IntArgs{batch, channels, aten.mul(height, block), aten.mul(width, block)});
}

Values lower_space_to_depth(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t block = block_of(n);
  Value* x = n.input("input");
  if (is_pixel_order(n)) return aten("pixel_unshuffle", x, block);
  const IntArg batch = n.size("input", 0), channels = n.size("input", 1);
  const IntArg height = aten.floor_div(n.size("input", 2), block), width = aten.floor_div(n.size("input", 3), block);
  x = aten("reshape", x, IntArgs{batch, channels, height, block, width, block});
  x = aten("permute", x, std::vector<int64_t>{0, 3, 5, 1, 2, 4});
  return aten("reshape", x, IntArgs{batch, aten.mul(channels, block * block), height, width});
}

void down_mode(OnnxEdit& edit) {
  const Attribute* mode = edit.node().find_attribute("mode");
  const auto* text = mode ? mode->value.get<std::string>() : nullptr;
  if (text != nullptr && *text != "DCR") edit.cannot("the older opset has no mode '{}'", *text);
  drop_attribute(edit, "mode");
}

constexpr OpsetStep kDepthToSpaceHistory[] = {{.to = 11, .down = down_mode}, {.to = 13, .adds = kBFloat16}, {.to = 28}};
constexpr OpsetStep kSpaceToDepthHistory[] = {{.to = 13, .adds = kBFloat16}, {.to = 28, .down = down_mode}};

/// DepthToSpace and SpaceToDepth with blocks of 1
Value* same_of_blocks(const Node& node) { return int_of(node, "blocksize") == 1 ? node.input(0) : nullptr; }

constexpr OnnxOp kSpaceOnnx[] = {
    {.sig = "DepthToSpace(T input, *, int blocksize, str mode=\"DCR\") -> T output",
     .since = 1,
     .traits = kTakesStrings,
     .history = kDepthToSpaceHistory,
     .infer = infer_depth_to_space,
     .eval = eval_depth_to_space,
     .same = same_of_blocks,
     .lower = lower_depth_to_space},
    {.sig = "SpaceToDepth(T input, *, int blocksize, str mode=\"DCR\") -> T output",
     .since = 1,
     .traits = kTakesStrings,
     .history = kSpaceToDepthHistory,
     .infer = infer_space_to_depth,
     .eval = eval_space_to_depth,
     .same = same_of_blocks,
     .lower = lower_space_to_depth},
};

constexpr AtenOp kSpaceAten[] = {
    {.sig = "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
     .types = types_pixel_shuffle,
     .layout = Layout::Channels,
     .python = "F.pixel_shuffle",
     .raise = raise_pixel_shuffle},
    {.sig = "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
     .types = types_pixel_unshuffle,
     .layout = Layout::Channels,
     .python = "F.pixel_unshuffle",
     .raise = raise_pixel_unshuffle},
};

}  // namespace

extern const OpFamily kSpaceOps;
constinit const OpFamily kSpaceOps{"space", kSpaceOnnx, kSpaceAten};

}  // namespace tonnx
