// col2im.cpp - windows put back to where they were taken from: Col2Im, MaxUnpool.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/open_node.h"
#include "ops/frame/rank_choice.h"
#include "ops/index/rows.h"
#include "ops/window/raise_window.h"
#include "ops/window/rows.h"
#include "ops/window/window.h"

namespace tonnx {
namespace {

// Col2Im

std::optional<size_t> find_col2im_rank(const NodeView& n) {
  for (const char* input : {"image_shape", "block_shape"}) {
    const Shape* shape = n.find_shape(input);
    require(!shape || shape->size() == 1, "{} has {} dimensions", input, shape ? shape->size() : 0);
    if (const auto count = shape ? shape->front().constant() : std::nullopt) {
      require(*count >= 1 && *count <= kMaxRank, "{} has {} numbers", input, *count);
      return static_cast<size_t>(*count);
    }
  }
  return std::nullopt;
}

void infer_col2im(InferNode& n) {
  const Shape* x = n.find_shape("input");
  require(!x || x->size() == 3, "the input has {} dimensions where it needs three", x ? x->size() : 0);
  const auto rank = find_col2im_rank(n);
  if (!x || !rank) return n.set(0, n.dtype("input"), std::nullopt);
  const auto image = n.find_dims("image_shape");
  const auto block = n.find_const_ints("block_shape");
  Dim channels = n.fresh();
  if (block) {
    require(block->size() == *rank, "block_shape has {} numbers where image_shape has {}", block->size(), *rank);
    for (const int64_t size : *block) require(size >= 1 && size <= kLargestWindow, "a block of size {}", size);
    const int64_t taps = count_of(*block);
    const auto rows = (*x)[1].constant();
    require(!rows || *rows % taps == 0, "{} rows do not divide into blocks of {}", rows.value_or(0), taps);
    channels = floor_div((*x)[1], taps);
  }
  Shape result{(*x)[0], channels};
  for (size_t i = 0; i < *rank; ++i) {
    require(!image || image->size() == *rank, "image_shape has {} numbers", image ? image->size() : 0);
    require(!image || !(*image)[i].is_constant() || (*image)[i].is_non_negative(), "an image of size {}",
            image ? (*image)[i].text() : "");
    result.push_back(image ? (*image)[i] : n.declared_or_fresh(0, i + 2, *rank + 2, *x));
  }
  n.set(0, n.dtype("input"), std::move(result));
}

struct Fold {
  IntArgs image, block;
  std::vector<int64_t> pads, strides, dilations;
};

/// Any number of dimensions: each element is added to where its index says.
Value* scattered(const OnnxNode& n, AtenBuilder& aten, const Fold& fold, Value* x, DType wide) {
  const size_t rank = fold.image.size();
  IntArgs padded;
  IntArg area = 1, taps = 1;
  for (size_t i = 0; i < rank; ++i) {
    padded.push_back(aten.add(fold.image[i], fold.pads[i] + fold.pads[rank + i]));
    area = aten.mul(area, padded[i]);
    taps = aten.mul(taps, fold.block[i]);
  }
  Value* index = nullptr;
  IntArg inner = 1;
  for (size_t i = rank; i-- > 0;) {
    // the window's own element and the window, as two of the 2 * rank dimensions
    const IntArg extent = aten.mul(aten.sub(fold.block[i], 1), fold.dilations[i]);
    const IntArg windows = aten.add(aten.floor_div(aten.sub(aten.sub(padded[i], extent), 1), fold.strides[i]), 1);
    IntArgs first(2 * rank, 1), second(2 * rank, 1);
    first[i] = -1;
    second[rank + i] = -1;
    Value* within = aten("reshape", aten("arange", fold.block[i]), first);
    if (fold.dilations[i] != 1) within = aten("mul.Scalar", within, fold.dilations[i]);
    Value* start = aten("reshape", aten("arange", windows), second);
    if (fold.strides[i] != 1) start = aten("mul.Scalar", start, fold.strides[i]);
    Value* at = aten("add.Tensor", within, start);
    if (!inner.is(1)) at = aten("mul.Scalar", at, inner);
    index = index ? aten("add.Tensor", index, at) : at;
    inner = aten.mul(inner, padded[i]);
  }
  const IntArg batch = n.size("input", 0), channels = aten.floor_div(n.size("input", 1), taps);
  Value* zeros = aten("zeros", IntArgs{batch, channels, area}, Kw{"dtype", wide});
  Value* y =
      aten("index_add", zeros, 2, aten("flatten.using_ints", index), aten("reshape", x, IntArgs{batch, channels, -1}));
  IntArgs sizes{batch, channels};
  sizes.insert(sizes.end(), padded.begin(), padded.end());
  return rank == 1 ? y : aten("reshape", y, sizes);
}

Values lower_col2im(const OnnxNode& n, AtenBuilder& aten) {
  const auto rank = find_col2im_rank(n);
  if (!rank) fail_unsupported("the number of dimensions of the image is not known");
  Fold fold{{}, n.int_args("block_shape", *rank), {}, {}, {}};
  const std::optional<Shape>& out = n.output_type().shape;
  if (out && std::all_of(out->begin() + 2, out->end(), [](const Dim& size) { return size.is_constant(); })) {
    n.find_dims("image_shape");
    for (size_t i = 2; i < out->size(); ++i) fold.image.push_back(*(*out)[i].constant());
  } else {
    fold.image = n.int_args("image_shape", *rank);
  }
  require(fold.image.size() == *rank && fold.block.size() == *rank, "image_shape and block_shape differ in length");
  fold.pads = spatial_ints(n, "pads", 2 * *rank, 0, 0);
  fold.strides = spatial_ints(n, "strides", *rank, 1, 1);
  fold.dilations = spatial_ints(n, "dilations", *rank, 1, 1);
  const DType dtype = n.dtype("input"), wide = computed_in(dtype);
  Value* y = cast(aten, n.input("input"), dtype, wide);
  const bool is_known =
      std::all_of(fold.block.begin(), fold.block.end(), [](const IntArg& size) { return !size.value; });
  if (*rank == 2 && is_float(dtype) && is_known) {
    const bool symmetric = fold.pads[0] == fold.pads[2] && fold.pads[1] == fold.pads[3];
    IntArgs image = fold.image;
    for (size_t i = 0; i < 2 && !symmetric; ++i) image[i] = aten.add(image[i], fold.pads[i] + fold.pads[2 + i]);
    const std::vector<int64_t> padding =
        symmetric ? std::vector{fold.pads[0], fold.pads[1]} : std::vector<int64_t>{0, 0};
    y = aten("col2im", y, image, fold.block, fold.dilations, padding, fold.strides);
    if (symmetric) return y;
  } else {
    y = scattered(n, aten, fold, y, wide);
  }
  for (size_t i = 0; i < *rank; ++i) {
    if (fold.pads[i] == 0 && fold.pads[*rank + i] == 0) continue;
    y = aten("narrow", y, static_cast<int64_t>(i) + 2, fold.pads[i], fold.image[i]);
  }
  return cast(aten, y, wide, dtype);
}

bool expand_col2im(const NodeView& n, OnnxEdit& edit) {
  if (find_col2im_rank(n)) return false;
  std::vector<int64_t> ranks{1, 2, 3};
  for (const char* name : {"strides", "dilations", "pads"}) {
    const auto given = n.find_ints(name);
    if (given) ranks = {static_cast<int64_t>(given->size()) / (std::string_view(name) == "pads" ? 2 : 1)};
  }
  return choose_length(edit, n, {"image_shape", "block_shape"}, ranks);
}

std::string emit_col2im(const Emission& e) {
  std::string text = fmt::format("F.fold({}, {}, {}", e.text("self"), e.text("output_size"), e.text("kernel_size"));
  return text + window_keywords(e, {"dilation", "padding", "stride"}) + ")";
}

// MaxUnpool

/// The spatial sizes that the pool had, without those that output_shape asks for.
Dims unpooled_sizes(const NodeView& n, const Shape& x) {
  const std::vector<int64_t> kernel = n.ints("kernel_shape");
  require(kernel.size() + 2 == x.size(), "kernel_shape has {} numbers for an input of {} dimensions", kernel.size(),
          x.size());
  const auto strides = spatial_ints(n, "strides", kernel.size(), 1, 1);
  const auto pads = spatial_ints(n, "pads", 2 * kernel.size(), 0, 0);
  Dims sizes;
  for (size_t i = 0; i < kernel.size(); ++i) {
    require(kernel[i] >= 1 && kernel[i] <= kLargestWindow, "the kernel has the size {}", kernel[i]);
    sizes.push_back((x[i + 2] - 1) * Dim(strides[i]) + (kernel[i] - pads[i] - pads[kernel.size() + i]));
    const Dim& size = sizes.back();
    require(!size.is_constant() || *size.constant() >= 0, "a result of size {}", size.text());
  }
  return sizes;
}

void infer_max_unpool(InferNode& n) {
  n.learn_rank("X", static_cast<int64_t>(n.ints("kernel_shape").size()) + 2);
  const Shape* x = n.find_shape("X");
  if (!x) return n.set(0, n.dtype("X"), n.has("output_shape") ? n.fresh_shape("output_shape") : std::nullopt);
  const Dims inferred = unpooled_sizes(n, *x);
  if (!n.has("output_shape")) {
    Shape result{(*x)[0], (*x)[1]};
    result.insert(result.end(), inferred.begin(), inferred.end());
    return n.set(0, n.dtype("X"), std::move(result));
  }
  if (const auto sizes = n.find_dims("output_shape")) {
    require(sizes->size() == x->size(), "output_shape has {} numbers where {} are needed", sizes->size(), x->size());
    for (const Dim& size : *sizes) require(!size.is_constant() || *size.constant() >= 0, "a size of {}", size.text());
    return n.set(0, n.dtype("X"), *sizes);
  }
  Shape result{(*x)[0], (*x)[1]};
  while (result.size() < x->size()) result.push_back(n.fresh());
  n.set(0, n.dtype("X"), std::move(result));
}

/// ONNX counts the elements of the whole tensor, PyTorch those of each channel: hence no F.max_unpool2d. The indices
/// are those of a tensor of the size that the pool had; a larger output_shape has zeros behind that.
Values lower_max_unpool(const OnnxNode& n, AtenBuilder& aten) {
  n.rank("X");
  const Shape& x = *n.find_shape("X");
  IntArgs sizes{n.size("X", 0), n.size("X", 1)};
  for (const Dim& size : unpooled_sizes(n, x)) sizes.push_back(n.int_arg(size));
  IntArgs wanted = sizes;
  if (n.has("output_shape")) {
    const IntArgs given = n.int_args("output_shape", x.size());
    std::copy(given.begin() + 2, given.end(), wanted.begin() + 2);
  }
  IntArg count = 1;
  for (const IntArg& size : sizes) count = aten.mul(count, size);
  Value* flat = aten("zeros", IntArgs{count}, Kw{"dtype", n.dtype("X")});
  Value* filled =
      aten("scatter.src", flat, 0, aten("flatten.using_ints", n.input("I")), aten("flatten.using_ints", n.input("X")));
  Value* y = aten("reshape", filled, sizes);
  if (!n.has("output_shape")) return y;
  std::vector<std::pair<IntArg, IntArg>> pads;
  for (size_t i = 2; i < sizes.size(); ++i) pads.emplace_back(0, aten.sub(wanted[i], sizes[i]));
  return pad_spatial(aten, y, pads);
}

constexpr OpsetStep kMaxUnpoolHistory[] = {{.to = 11}, {.to = 22, .adds = kBFloat16}};

constexpr OnnxOp kFoldOnnx[] = {
    {.sig = "Col2Im(T input, tensor(int64) image_shape, tensor(int64) block_shape, *, ints? strides, ints? pads, ints? "
            "dilations) -> T output",
     .since = 18,
     .infer = infer_col2im,
     .eval = eval_col2im,
     .lower = lower_col2im,
     .expand = expand_col2im},
    {.sig = "MaxUnpool(T1 X, T2 I, T2? output_shape, *, ints? pads, ints? strides, ints kernel_shape) -> T1 output",
     .since = 9,
     .history = kMaxUnpoolHistory,
     .infer = infer_max_unpool,
     .open = open_first_axes<0, 1>,
     .eval = eval_max_unpool,
     .lower = lower_max_unpool},
};

constexpr AtenOp kFoldAten[] = {
    {.sig = "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
            "int[2] stride) -> Tensor",
     .types = types_col2im,
     .emit = emit_col2im,
     .raise = raise_col2im},
    {.sig = "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
     .types = types_as_self,
     .python = "torch.index_add",
     .raise = raise_index_add,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kFoldOps;
constinit const OpFamily kFoldOps{"fold", kFoldOnnx, kFoldAten};

}  // namespace tonnx
