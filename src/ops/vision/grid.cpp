// grid.cpp - images sampled where a grid says: GridSample, AffineGrid, DeformConv.
#include <algorithm>

#include "base/error.h"
#include "ops/conv/rows.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/open_node.h"
#include "ops/frame/rank_choice.h"
#include "ops/vision/rows.h"
#include "ops/window/window.h"

namespace tonnx {
namespace {

// GridSample

constexpr std::string_view kModes[] = {"linear", "nearest", "cubic"};
constexpr std::string_view kPaddings[] = {"zeros", "border", "reflection"};

int64_t place_of(std::span<const std::string_view> names, const std::string& name, const char* what) {
  const auto at = std::find(names.begin(), names.end(), name);
  require(at != names.end(), "{} is '{}'", what, name);
  return at - names.begin();
}

/// The number of spatial dimensions; throws where X and the grid contradict each other.
std::optional<int64_t> find_spatial_rank(const NodeView& n) {
  const Shape *x = n.find_shape("X"), *grid = n.find_shape("grid");
  const size_t rank = x ? x->size() : grid ? grid->size() : 3;
  require(rank >= 3, "the input has {} dimensions, and needs three", rank);
  require(!grid || grid->size() == rank, "the grid has {} dimensions where the input has {}", grid ? grid->size() : 0,
          rank);
  const auto last = grid ? grid->back().constant() : std::nullopt;
  require(!last || *last == static_cast<int64_t>(rank) - 2, "the grid has {} coordinates for {} dimensions",
          last.value_or(0), rank - 2);
  if (!x && !grid) return std::nullopt;
  return static_cast<int64_t>(rank) - 2;
}

void infer_grid_sample(InferNode& n) {
  place_of(kModes, n.s("mode"), "the mode");
  place_of(kPaddings, n.s("padding_mode"), "padding_mode");
  find_spatial_rank(n);
  n.learn_rank("X", n.find_rank("grid"));
  n.learn_rank("grid", n.find_rank("X"));
  const Shape *x = n.find_shape("X"), *grid = n.find_shape("grid");
  if (!x || !grid) return n.set(0, n.dtype("X"), std::nullopt);
  Shape result{(*x)[0], (*x)[1]};
  result.insert(result.end(), grid->begin() + 1, grid->end() - 1);
  n.set(0, n.dtype("X"), std::move(result));
}

/// What PyTorch has no kernel for: cubic samples of volumes, and other numbers of dimensions than two and three.
class WrittenOutSample {
 public:
  WrittenOutSample(const OnnxNode& n, AtenBuilder& aten, int64_t rank)
      : n_(n),
        aten_(aten),
        rank_(rank),
        mode_(n.s("mode")),
        padding_(n.s("padding_mode")),
        aligns_(n.flag("align_corners")) {}

  Value* sample(Value* x, Value* grid) {
    IntArgs ones(static_cast<size_t>(2 * rank_ + 1), 1);
    ones[0] = -1;
    std::vector<Value*> index{aten_("reshape", aten_("arange", n_.size("X", 0)), ones), nullptr};
    Value* weight = nullptr;
    for (int64_t i = 0; i < rank_; ++i) {
      const IntArg size = n_.size("X", i + 2);
      const auto [taps, weights] = along(aten_("select.int", grid, -1, rank_ - 1 - i), size);
      index.push_back(in_place(taps, i));
      if (weights == nullptr) continue;
      Value* each = in_place(weights, i);
      weight = weight ? aten_("mul.Tensor", weight, each) : each;
    }
    Value* taken = aten_("index.Tensor", x, index);  // [N, out ..., taps ..., C]
    if (weight != nullptr) taken = aten_("mul.Tensor", taken, aten_("unsqueeze", weight, -1));
    std::vector<int64_t> taps;
    for (int64_t i = 0; i < rank_; ++i) taps.push_back(1 + rank_ + i);
    return aten_("movedim.int", aten_("sum.dim_IntList", taken, taps), -1, 1);
  }

 private:
  /// The elements that count for each coordinate, along a new last dimension, and their weights; none where there is
  /// one element only, which counts in full.
  std::pair<Value*, Value*> along(Value* at, const IntArg& size) {
    const IntArg last = aten_.sub(size, 1);
    Value* moved = aten_("add.Scalar", at, 1);
    moved = aligns_ ? aten_("mul.Scalar", moved, last) : aten_("sub.Scalar", aten_("mul.Scalar", moved, size), 1);
    Value* x = aten_("unsqueeze", aten_("div.Scalar", moved, 2), -1);
    Value *taps = nullptr, *weights = nullptr;
    if (mode_ == "nearest") {
      taps = aten_("round", x);
    } else {
      Value* offsets = mode_ == "linear" ? aten_("arange", 2) : aten_("arange.start_step", -1, 3);
      taps = aten_("add.Tensor", aten_("floor", x), offsets);
      Value* distance = aten_("abs", aten_("sub.Tensor", x, taps));
      weights = mode_ == "linear" ? aten_("rsub.Scalar", distance, 1) : cubic(distance);
    }
    if (padding_ == "zeros") {
      Value* inside = aten_("bitwise_and.Tensor", aten_("ge.Scalar", taps, 0), aten_("le.Scalar", taps, last));
      weights = weights ? aten_("mul.Tensor", weights, inside) : aten_("to.dtype", inside, n_.dtype("grid"));
    }
    if (padding_ == "reflection") taps = reflected(taps, size);
    return {aten_("to.dtype", aten_("clamp", taps, 0, last), DType::Int64), weights};
  }

  /// Back and forth between the borders, which lie on the outermost elements, or half a step outside.
  Value* reflected(Value* taps, const IntArg& size) {
    const IntArg period = aligns_ ? aten_.max(aten_.sub(size, 1), 1) : size;
    Value* from = aligns_ ? taps : aten_("add.Scalar", taps, 0.5);
    Value* within = aten_("remainder.Scalar", from, aten_.mul(period, 2));
    Value* back = aten_("rsub.Scalar", aten_("abs", aten_("sub.Scalar", within, period)), period);
    return aligns_ ? back : aten_("sub.Scalar", back, 0.5);
  }

  Value* cubic(Value* d) {
    constexpr double a = -0.75;
    Value* near = aten_("mul.Tensor", aten_("sub.Scalar", aten_("mul.Scalar", d, a + 2), a + 3), aten_("square", d));
    Value* far = aten_("add.Scalar", aten_("mul.Tensor", aten_("sub.Scalar", d, 5), d), 8);
    far = aten_("mul.Scalar", aten_("sub.Scalar", aten_("mul.Tensor", far, d), 4), a);
    return aten_("where.self", aten_("le.Scalar", d, 1), aten_("add.Scalar", near, 1), far);
  }

  /// [N, out ..., taps] with the taps at dimension i of those behind the result's.
  Value* in_place(Value* x, int64_t i) {
    for (int64_t k = i + 1; k < rank_; ++k) x = aten_("unsqueeze", x, -1);
    for (int64_t k = 0; k < i; ++k) x = aten_("unsqueeze", x, rank_ + 1);
    return x;
  }

  const OnnxNode& n_;
  AtenBuilder& aten_;
  int64_t rank_;
  std::string mode_, padding_;
  bool aligns_;
};

Values lower_grid_sample(const OnnxNode& n, AtenBuilder& aten) {
  const auto rank = find_spatial_rank(n);
  if (!rank) fail_unsupported("neither the rank of the input nor that of the grid is known");
  const int64_t mode = place_of(kModes, n.s("mode"), "the mode");
  const DType dtype = n.dtype("X"), grid_dtype = n.dtype("grid");
  const DType wide = is_float(dtype) ? dtype : DType::Float64;
  Value* x = cast(aten, n.input("X"), dtype, wide);
  Value* y = nullptr;
  if (*rank == 2 || (*rank == 3 && mode != 2)) {
    const int64_t padding = place_of(kPaddings, n.s("padding_mode"), "padding_mode");
    Value* grid = cast(aten, n.input("grid"), grid_dtype, wide);
    y = aten("grid_sampler", x, grid, mode, padding, n.flag("align_corners"));
  } else {
    y = WrittenOutSample(n, aten, *rank).sample(x, n.input("grid"));
    if (grid_dtype != wide) y = aten("to.dtype", y, wide);
  }
  return cast(aten, y, wide, dtype);
}

bool expand_grid_sample(const NodeView& n, OnnxEdit& edit) {
  return choose_rank(edit, n, {"X", "grid"}, from_to(3, 5));
}

/// Opset 16 knows images only, and has names for them.
void up_grid_sample_20(OnnxEdit& edit) {
  const Attribute* mode = edit.node().find_attribute("mode");
  const auto* name = mode ? mode->value.get<std::string>() : nullptr;
  if (name == nullptr) return;
  if (*name == "bilinear") edit.node().set_attribute("mode", std::string("linear"), AttrType::String);
  if (*name == "bicubic") edit.node().set_attribute("mode", std::string("cubic"), AttrType::String);
}

void down_grid_sample_20(OnnxEdit& edit) {
  if (edit.rank(0).value_or(edit.rank(1).value_or(4)) != 4) edit.cannot("the older opset samples images only");
  const Attribute* mode = edit.node().find_attribute("mode");
  const auto* name = mode ? mode->value.get<std::string>() : nullptr;
  if (name == nullptr) return;
  if (*name == "linear") edit.node().set_attribute("mode", std::string("bilinear"), AttrType::String);
  if (*name == "cubic") edit.node().set_attribute("mode", std::string("bicubic"), AttrType::String);
}

std::string emit_grid_sampler(const Emission& e) {
  constexpr std::string_view kTorchModes[] = {"bilinear", "nearest", "bicubic"};
  const auto mode = static_cast<size_t>(e.find_int("interpolation_mode").value_or(0));
  const auto padding = static_cast<size_t>(e.find_int("padding_mode").value_or(0));
  std::string text = fmt::format("F.grid_sample({}, {}", e.text("input"), e.text("grid"));
  if (mode != 0) text += fmt::format(", mode=\"{}\"", kTorchModes[mode % 3]);
  if (padding != 0) text += fmt::format(", padding_mode=\"{}\"", kPaddings[padding % 3]);
  return text + fmt::format(", align_corners={})", e.text("align_corners"));
}

// AffineGrid

void infer_affine_grid(InferNode& n) {
  const Shape* theta = n.find_shape("theta");
  const auto size = n.find_dims("size");
  require(!theta || theta->size() == 3, "theta has {} dimensions where it needs three", theta ? theta->size() : 0);
  require(!size || size->size() == 4 || size->size() == 5, "the size has {} numbers", size ? size->size() : 0);
  auto rank = theta ? (*theta)[1].constant() : std::nullopt;
  const Shape* count_of_size = n.find_shape("size");
  const auto given = count_of_size && count_of_size->size() == 1 ? count_of_size->front().constant() : std::nullopt;
  if (!rank && !size && given) rank = *given - 2;
  require(!rank || !size || *rank + 2 == static_cast<int64_t>(size->size()),
          "theta and the size contradict each other");
  if (!size && !rank) return n.set(0, n.dtype("theta"), std::nullopt);
  require(!rank || *rank == 2 || *rank == 3, "theta is for {} dimensions", rank.value_or(0));
  const size_t count = size ? size->size() : static_cast<size_t>(*rank) + 2;
  const Shape known = theta ? *theta : Shape{n.fresh()};
  Shape result{size ? (*size)[0] : n.declared_or_fresh(0, 0, count, known)};
  for (size_t i = 2; i < count; ++i) result.push_back(size ? (*size)[i] : n.declared_or_fresh(0, i - 1, count, known));
  result.emplace_back(static_cast<int64_t>(count) - 2);
  n.set(0, n.dtype("theta"), std::move(result));
}

Values lower_affine_grid(const OnnxNode& n, AtenBuilder& aten) {
  const auto rank = n.output_type().rank();
  if (!rank) fail_unsupported("neither the shape of theta nor the size is known");
  const Shape& shape = *n.output_type().shape;
  IntArgs size;
  if (std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_constant(); })) {
    n.find_dims("size");
    for (const Dim& dim : shape) size.emplace_back(*dim.constant());
    size.pop_back();
    size.insert(size.begin() + 1, 1);  // channels, of which a grid knows nothing
  } else {
    size = n.int_args("size", static_cast<size_t>(*rank));
  }
  return aten("affine_grid_generator", n.input("theta"), size, n.flag("align_corners"));
}

bool expand_affine_grid(const NodeView& n, OnnxEdit& edit) {
  const Shape* theta = n.find_shape("theta");
  if (theta && theta->size() == 3 && (*theta)[1].is_constant()) return false;
  return choose_length(edit, n, {"size"}, {4, 5});
}

// DeformConv

/// The kernel's sizes, from the attribute or the weight.
std::vector<int64_t> deform_kernel(const NodeView& n) {
  auto kernel = n.find_ints("kernel_shape");
  if (!kernel) {
    const Shape* weight = n.find_shape("W");
    require(!weight || weight->size() >= 3, "the weight has {} dimensions", weight ? weight->size() : 0);
    kernel.emplace();
    for (size_t i = 2; weight && i < weight->size(); ++i) {
      if (!(*weight)[i].is_constant()) fail_unsupported("the shape of the weight is not known");
      kernel->push_back(*(*weight)[i].constant());
    }
  }
  if (kernel->size() != 2 && kernel->size() != 3) fail_unsupported("a kernel of {} dimensions", kernel->size());
  for (const int64_t size : *kernel) require(size >= 1 && size <= 4096, "the kernel has the size {}", size);
  return *kernel;
}

void infer_deform_conv(InferNode& n) {
  const auto kernel = n.find_ints("kernel_shape");
  for (const char* name : {"W", "X", "offset"})
    n.learn_rank(name, kernel ? std::optional(static_cast<int64_t>(kernel->size()) + 2) : n.find_rank("W"));
  const Shape *x = n.find_shape("X"), *weight = n.find_shape("W"), *offset = n.find_shape("offset");
  for (const Shape* shape : {x, weight, offset}) {
    require(!shape || shape->size() >= 3, "an input has {} dimensions", shape ? shape->size() : 0);
  }
  require(n.i("group") >= 1 && n.i("offset_group") >= 1, "a number of groups is not positive");
  if (!offset || !weight) return n.set(0, n.dtype("X"), std::nullopt);
  Shape result{(*offset)[0], (*weight)[0]};
  result.insert(result.end(), offset->begin() + 2, offset->end());
  n.set(0, n.dtype("X"), std::move(result));
}

/// Whether -1 and 1 are to be the middles of the outermost elements, and not their outer edges: rounds less, but needs
/// two elements.
bool deform_aligns(const NodeView& n) {
  const Shape& x = *n.find_shape("X");
  return std::all_of(x.begin() + 2, x.end(),
                     [](const Dim& size) { return size.is_constant() && *size.constant() > 1; });
}

/// The samples as F.grid_sample takes them, [N * groups, taps * out, out ..., coordinates].
Value* deform_grid(const OnnxNode& n, AtenBuilder& aten, const std::vector<int64_t>& kernel, Value* offset) {
  const size_t rank = kernel.size();
  const std::vector<int64_t> pads = spatial_ints(n, "pads", 2 * rank, 0, 0);
  const std::vector<int64_t> strides = spatial_ints(n, "strides", rank, 1, 1);
  const std::vector<int64_t> dilations = spatial_ints(n, "dilations", rank, 1, 1);
  const int64_t taps = count_of(kernel);
  std::vector<Value*> coordinates;
  for (size_t i = 0; i < rank; ++i) {
    std::vector<double> start;
    int64_t inner = 1;
    for (size_t k = i + 1; k < rank; ++k) inner *= kernel[k];
    for (int64_t tap = 0; tap < taps; ++tap) {
      start.push_back(static_cast<double>(tap / inner % kernel[i] * dilations[i] - pads[i]));
    }
    std::vector<int64_t> dims(rank + 1, 1);
    dims[0] = taps;
    Value* steps = aten("arange", n.size("offset", static_cast<int64_t>(i) + 2));
    if (strides[i] != 1) steps = aten("mul.Scalar", steps, strides[i]);
    if (i + 1 < rank) {
      IntArgs ones(rank - i, 1);
      ones[0] = -1;
      steps = aten("reshape", steps, ones);
    }
    Value* at = aten("add.Tensor", aten("select.int", offset, 2, static_cast<int64_t>(i)),
                     aten.constant(make_floats(DType::Float32, dims, start), "taps"));
    at = aten("add.Tensor", at, steps);
    IntArg size = n.size("X", static_cast<int64_t>(i) + 2);
    at = aten("mul.Scalar", at, 2);
    if (deform_aligns(n)) {
      size = aten.sub(size, 1);
    } else {
      at = aten("add.Scalar", at, 1);  // the middle of an element is half a step behind its edge
    }
    at = aten("sub.Scalar", size.is(1) ? at : aten("div.Scalar", at, size), 1);
    coordinates.insert(coordinates.begin(), at);
  }
  return aten("flatten.using_ints", aten("stack", coordinates, -1), 1, 2);
}

Values lower_deform_conv(const OnnxNode& n, AtenBuilder& aten) {
  const std::vector<int64_t> kernel = deform_kernel(n);
  const size_t rank = kernel.size();
  require(n.rank("X") == static_cast<int64_t>(rank) + 2 && n.rank("offset") == n.rank("X"),
          "the ranks of the inputs contradict one another");
  const int64_t taps = count_of(kernel), group = n.i("group"), offset_group = n.i("offset_group");
  const DType dtype = n.dtype("X");
  // sixteen bits are too few for places
  const DType wide = dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
  const auto input = [&](std::string_view name) { return cast(aten, n.input(name), dtype, wide); };
  const IntArg batch = n.size("X", 0), channels = n.size("X", 1), filters = n.size("W", 0);
  const IntArg images = aten.mul(batch, offset_group);
  IntArgs out, whole;
  for (size_t i = 0; i < rank; ++i) {
    out.push_back(n.size("offset", static_cast<int64_t>(i) + 2));
    whole.push_back(n.size("X", static_cast<int64_t>(i) + 2));
  }
  const auto shaped = [&](Value* x, IntArgs sizes, const IntArgs& rest) {
    sizes.insert(sizes.end(), rest.begin(), rest.end());
    return aten("reshape", x, sizes);
  };
  Value* offset = shaped(input("offset"), {images, taps, static_cast<int64_t>(rank)}, out);
  Value* grid = deform_grid(n, aten, kernel, offset);
  Value* x = input("X");
  if (offset_group != 1) x = shaped(x, {images, aten.floor_div(channels, offset_group)}, whole);
  Value* samples = aten("grid_sampler", x, grid, 0, 0, deform_aligns(n));
  if (n.has("mask")) {
    IntArgs merged = out;
    merged[0] = aten.mul(out[0], taps);
    samples = aten("mul.Tensor", samples, shaped(input("mask"), {images, 1}, merged));
  }
  const IntArg each = aten.mul(aten.floor_div(channels, group), taps);
  Value* weight = input("W");
  Value* y = nullptr;
  if (group == 1) {
    y = aten("matmul", aten("flatten.using_ints", weight, 1), aten("reshape", samples, IntArgs{batch, each, -1}));
  } else {
    weight = aten("reshape", weight, IntArgs{group, aten.floor_div(filters, group), each});
    y = aten("matmul", weight, aten("reshape", samples, IntArgs{batch, group, each, -1}));
  }
  y = shaped(y, {batch, filters}, out);
  if (n.has("B")) {
    IntArgs ones(rank + 1, 1);
    ones[0] = -1;
    y = aten("add.Tensor", y, aten("reshape", input("B"), ones));
  }
  return cast(aten, y, wide, dtype);
}

void open_affine_grid(OpenNode& n) {
  constexpr size_t kSize = 1;
  auto size = n.list(kSize, "size");
  const Shape* theta = n.shape(0);
  if (theta == nullptr || !size || size->empty() || !(*size)[0].is_constant() || !n.is_open((*theta)[0])) return;
  (*size)[0] = (*theta)[0];
  n.set_list(kSize, "size", *size);
}

void open_deform_conv(OpenNode& n) {
  open_samples(n);
  open_first_axes<0, 2, 4>(n);
}

constexpr OpsetStep kGridSampleHistory[] = {
    {.to = 20, .up = up_grid_sample_20, .down = down_grid_sample_20},
    {.to = 22, .adds = kBFloat16},
};
constexpr OpsetStep kGridTypes22[] = {{.to = 22, .adds = kBFloat16}};

constexpr OnnxOp kGridOnnx[] = {
    {.sig =
         "GridSample(T1 X, T2 grid, *, int align_corners=0, str padding_mode=\"zeros\", str mode=\"linear\") -> T1 Y",
     .since = 16,
     .history = kGridSampleHistory,
     .infer = infer_grid_sample,
     .open = open_first_axes<0, 1>,
     .eval = eval_grid_sample,
     .lower = lower_grid_sample,
     .expand = expand_grid_sample},
    {.sig = "AffineGrid(T1 theta, T2 size, *, int align_corners=0) -> T1 grid",
     .since = 20,
     .infer = infer_affine_grid,
     .open = open_affine_grid,
     .eval = eval_affine_grid,
     .lower = lower_affine_grid,
     .expand = expand_affine_grid},
    {.sig = "DeformConv(T X, T W, T offset, T? B, T? mask, *, ints? strides, ints? pads, int offset_group=1, ints? "
            "kernel_shape, int group=1, ints? dilations) -> T Y",
     .since = 19,
     .traits = kSumsProducts,
     .history = kGridTypes22,
     .infer = infer_deform_conv,
     .open = open_deform_conv,
     .eval = eval_deform_conv,
     .lower = lower_deform_conv,
     .note = "over two or three dimensions"},
};

constexpr AtenOp kGridAten[] = {
    {.sig = "aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
            "align_corners) -> Tensor",
     .types = types_grid_sampler,
     .emit = emit_grid_sampler,
     .raise = raise_grid_sampler},
    {.sig = "aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
     .types = types_affine_grid,
     .python = "F.affine_grid",
     .raise = raise_affine_grid},
};

}  // namespace

extern const OpFamily kGridOps;
constinit const OpFamily kGridOps{"grid", kGridOnnx, kGridAten};

}  // namespace tonnx
