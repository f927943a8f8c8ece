// conv.cpp - convolutions and their transposes: Conv, ConvTranspose.
#include "ops/conv/conv.h"

#include <algorithm>

#include "base/error.h"
#include "ops/conv/rows.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/size_node.h"
#include "ops/window/window.h"

namespace tonnx {
namespace {

/// The spatial sizes of the weight, where known.
std::optional<Dims> find_kernel(const NodeView& n, const ConvNames& names = {}) {
  const Shape* weight = n.find_shape(names.w);
  require(weight == nullptr || weight->size() >= 3, "the weight of a convolution has {} dimensions",
          weight ? weight->size() : 0);
  const auto given = n.find_ints("kernel_shape");
  if (!given && weight == nullptr) return std::nullopt;
  Dims kernel = given ? Dims(given->begin(), given->end()) : Dims(weight->begin() + 2, weight->end());
  require(weight == nullptr || weight->size() == kernel.size() + 2, "kernel_shape does not fit the weight");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Dim& size = kernel[i];
    require(!size.is_constant() || (*size.constant() >= 1 && *size.constant() <= kLargestWindow),
            "the kernel has the size {}", size.text());
    if (weight != nullptr && size.is_constant() && (*weight)[i + 2].is_constant()) {
      require(size == (*weight)[i + 2], "kernel_shape has {} where the weight has {}", size.text(),
              (*weight)[i + 2].text());
    }
  }
  return kernel;
}

Dims get_kernel(const NodeView& n, const ConvNames& names = {}) {
  auto kernel = find_kernel(n, names);
  if (!kernel) fail_unsupported("neither kernel_shape nor the shape of the weight is known");
  if (kernel->empty() || kernel->size() > 3) {
    fail_unsupported("PyTorch has no convolution over {} dimensions", kernel->size());
  }
  return *kernel;
}

int64_t group_of(const NodeView& n) {
  const int64_t group = n.i("group");
  require(group >= 1 && group <= kLargestWindow, "group is {}", group);
  return group;
}

/// Throws where the channels of input, weight and groups contradict one another.
void check_channels(const NodeView& n, bool transposed, const ConvNames& names = {}) {
  const int64_t group = group_of(n);
  const Shape* x = n.find_shape(names.x);
  const Shape* weight = n.find_shape(names.w);
  if (weight == nullptr) return;
  const auto outer = (*weight)[0].constant();
  require(!outer || *outer % group == 0, "{} channels of the weight do not divide into {} groups", outer.value_or(0),
          group);
  if (x == nullptr || x->size() < 2) return;
  const Dim wanted = transposed ? (*weight)[0] : (*weight)[1] * Dim(group);
  require(!wanted.is_constant() || !(*x)[1].is_constant() || wanted == (*x)[1],
          "the input has {} channels where the weight asks for {}", (*x)[1].text(), wanted.text());
}

}  // namespace

void learn_conv_ranks(InferNode& n, const ConvNames& names) {
  const auto kernel = n.find_ints("kernel_shape");
  const auto given = kernel ? std::optional(static_cast<int64_t>(kernel->size()) + 2) : std::nullopt;
  n.learn_rank(names.w, given);
  n.learn_rank(names.x, given ? given : n.find_rank(names.w));
  n.learn_rank(names.w, n.find_rank(names.x));
}

std::optional<Shape> conv_shape(const NodeView& n, const ConvNames& names) {
  const Shape* x = n.find_shape(names.x);
  const Shape* weight = n.find_shape(names.w);
  const auto kernel = find_kernel(n, names);
  if (x == nullptr || weight == nullptr || !kernel) return std::nullopt;
  check_channels(n, false, names);
  return window_shape(*x, window_of(n, *kernel, names.x), (*weight)[0]);
}

Value* convolved(const OnnxNode& n, AtenBuilder& aten, Value* x, Value* weight, Value* bias, const ConvNames& names) {
  const Window window = window_of(n, get_kernel(n, names), names.x);
  const int64_t groups = group_of(n);
  if (Value* empty = find_empty(n, aten, x)) return empty;
  const auto padding = window.symmetric_pads();
  if (!padding) x = pad_spatial(n, aten, x, window);
  return aten(fmt::format("conv{}d", window.rank()), x, weight, bias, window.strides,
              padding.value_or(std::vector<int64_t>(window.rank(), 0)), window.dilations, groups);
}

namespace {

/// PyTorch's operators are for one, two or three spatial dimensions each.
bool expand_conv_by_rank(const NodeView& n, OnnxEdit& edit) {
  return !n.find_ints("kernel_shape") && choose_rank(edit, n, {"W", "X"}, from_to(3, 5));
}

void infer_conv(InferNode& n) {
  learn_conv_ranks(n);
  n.set(0, n.dtype("X"), conv_shape(n));
  const Shape *x = n.find_shape("X"), *weight = n.find_shape("W");
  if (x && weight && x->size() > 2 && weight->size() > 2) n.same((*x)[1], (*weight)[1] * Dim(group_of(n)));
}

Values lower_conv(const OnnxNode& n, AtenBuilder& aten) {
  return convolved(n, aten, n.input("X"), n.input("W"), n.find_input("B"));
}

/// The same geometry the other way round: the pads are cut off the result.
struct TransposedWindow {
  Window window;
  std::vector<int64_t> output_padding;
  Dims out;  // the spatial sizes of the result

  Dim full(size_t i, const Dim& in) const { return (in - 1) * Dim(window.strides[i]) + window.extent(i); }
};

TransposedWindow transposed_window(const NodeView& n, Dims kernel) {
  const size_t rank = kernel.size();
  TransposedWindow t;
  Window& w = t.window;
  w.kernel = std::move(kernel);
  w.strides = spatial_ints(n, "strides", rank, 1, 1);
  w.dilations = spatial_ints(n, "dilations", rank, 1, 1);
  t.output_padding = spatial_ints(n, "output_padding", rank, 0, 0);
  const std::vector<int64_t> pads = spatial_ints(n, "pads", 2 * rank, 0, 0);
  const std::string auto_pad = n.s("auto_pad");
  auto out = n.find_ints("output_shape");
  if (out && out->size() == rank + 2) out->erase(out->begin(), out->begin() + 2);
  require(!out || out->size() == rank, "output_shape has {} sizes where {} are needed", out ? out->size() : 0, rank);
  const Shape* x = n.find_shape("X");
  require(x == nullptr || x->size() == rank + 2, "the input has {} dimensions where the weight asks for {}",
          x ? x->size() : 0, rank + 2);
  if (x == nullptr && out) fail_unsupported("output_shape needs the sizes of the input, which are not known");
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  require(is_same || auto_pad == "NOTSET" || auto_pad == "VALID", "auto_pad is '{}'", auto_pad);
  w.larger_first = auto_pad != "SAME_UPPER";
  for (size_t i = 0; i < rank; ++i) {
    Dim begin(auto_pad == "NOTSET" ? pads[i] : 0), end(auto_pad == "NOTSET" ? pads[rank + i] : 0);
    if (out || is_same) {
      require(!out || ((*out)[i] >= 0 && (*out)[i] <= kLargestWindow), "output_shape has the size {}",
              out ? (*out)[i] : 0);
      // without output_shape the result has size * stride elements, so that the input's own size falls out
      const Dim total = out ? t.full(i, (*x)[i + 2]) + t.output_padding[i] - (*out)[i]
                            : w.extent(i) - w.strides[i] + t.output_padding[i];
      const Dim cut = max(total, 0);
      begin = w.larger_first ? cut - floor_div(cut, 2) : floor_div(cut, 2);
      w.total.push_back(cut);
      end = (out ? total : cut) - begin;  // negative: output_shape asks for more than there is
    }
    w.begin.push_back(begin);
    w.end.push_back(end);
    if (out) {
      t.out.emplace_back((*out)[i]);
    } else if (x != nullptr) {
      t.out.push_back(t.full(i, (*x)[i + 2]) + t.output_padding[i] - begin - end);
    }
  }
  return t;
}

}  // namespace

std::optional<std::vector<int64_t>> find_transposed_pads(const NodeView& n) {
  const auto kernel = find_kernel(n);
  if (!kernel) return std::nullopt;
  std::vector<int64_t> pads;
  for (const Dim& begin : transposed_window(n, *kernel).window.begin) {
    if (!begin.is_constant()) return std::nullopt;
    pads.push_back(*begin.constant());
  }
  return pads;
}

namespace {

void infer_conv_transpose(InferNode& n) {
  learn_conv_ranks(n);
  const Shape* x = n.find_shape("X");
  const Shape* weight = n.find_shape("W");
  const auto kernel = find_kernel(n);
  if (x == nullptr || weight == nullptr || !kernel) return n.set(0, n.dtype("X"), std::nullopt);
  check_channels(n, true);
  const TransposedWindow t = transposed_window(n, *kernel);
  Shape shape{(*x)[0], (*weight)[1] * Dim(group_of(n))};
  for (const Dim& size : t.out) {
    require(!size.is_constant() || *size.constant() >= 0, "the pads are larger than the result");
    shape.push_back(size);
  }
  n.set(0, n.dtype("X"), std::move(shape));
}

/// How the full result of one dimension is cut: by PyTorch's own arguments as far as they go, the rest by hand.
struct Cut {
  int64_t padding = 0, output_padding = 0;
  Dim begin, end;     // what is left to be cut off
  int64_t added = 0;  // what is missing at the end, past all that the input reaches
};

Cut cut_of(const TransposedWindow& t, size_t i) {
  const auto begin = t.window.begin[i].constant(), end = t.window.end[i].constant();
  if (!begin || !end) return {.begin = t.window.begin[i], .end = t.window.end[i] - t.output_padding[i]};
  const int64_t behind = *end - t.output_padding[i];
  const int64_t most = std::max(t.window.strides[i], t.window.dilations[i]) - 1;  // that output_padding may be
  if (behind >= *begin) return {.padding = *begin, .end = behind - *begin};
  if (*begin - behind <= most) return {.padding = *begin, .output_padding = *begin - behind};
  if (behind >= 0) return {.padding = behind, .begin = *begin - behind};
  const int64_t grown = std::min(-behind, most);
  return {.output_padding = grown, .begin = *begin, .added = -behind - grown};
}

Values lower_conv_transpose(const OnnxNode& n, AtenBuilder& aten) {
  const TransposedWindow t = transposed_window(n, get_kernel(n));
  const size_t rank = t.window.rank();
  std::vector<Cut> cuts;
  std::vector<int64_t> padding, output_padding;
  std::vector<std::pair<IntArg, IntArg>> added;
  for (size_t i = 0; i < rank; ++i) {
    cuts.push_back(cut_of(t, i));
    padding.push_back(cuts[i].padding);
    output_padding.push_back(cuts[i].output_padding);
    added.emplace_back(0, cuts[i].added);
  }
  // of an input whose size only the run tells, output_shape may ask for more than there is, too
  const auto may_lack = [&](const Cut& cut) { return !cut.end.is_constant() && n.has("output_shape"); };
  const bool adds =
      std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) { return cut.added > 0 || may_lack(cut); });
  Value* bias = n.find_input("B");
  const char* names[] = {"conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"};
  Value* y = aten(names[rank - 1], n.input("X"), n.input("W"), adds ? nullptr : bias, t.window.strides, padding,
                  output_padding, group_of(n), t.window.dilations);
  for (size_t i = 0; i < rank; ++i) {
    const Cut& cut = cuts[i];
    if (cut.begin.is(0) && cut.end.is(0)) continue;
    const auto end = cut.end.constant();
    const IntArg start = cut.begin.is_constant() ? n.int_arg(cut.begin) : pad_arguments(n, aten, t.window, i).first;
    Arg stop = nullptr;
    if (end && *end > 0) stop = -*end;
    if (!end && t.out.empty()) fail_unsupported("the sizes of the input are not known");
    if (!end) stop = aten.add(start, n.int_arg(t.out[i]));
    const auto dim = static_cast<int64_t>(i + 2);
    y = aten("slice.Tensor", y, dim, start, stop);
    if (may_lack(cut)) added[i].second = aten.sub(n.int_arg(t.out[i]), aten("sym_size.int", y, dim));
  }
  if (!adds) return y;
  y = pad_spatial(aten, y, added);
  if (bias == nullptr) return y;
  std::vector<int64_t> sizes(rank + 1, 1);
  sizes[0] = -1;
  return aten("add.Tensor", y, aten("reshape", bias, sizes));
}

std::string emit_conv(const Emission& e) { return spell_window_call(e, 3); }

/// nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
}  // namespace

std::optional<ModuleSpec> module_conv(const Emission& e) {
  Value* weight = e.value("weight");
  Value* bias = e.value("bias");
  if (weight == nullptr || !weight->constant || (bias != nullptr && !bias->constant)) return std::nullopt;
  const std::vector<int64_t>& dims = weight->constant->dims;
  const std::string& name = e.signature().name;
  const size_t rank = static_cast<size_t>(name[name.size() - 2] - '0');
  const int64_t groups = e.find_int("groups").value_or(0);
  if (dims.size() != rank + 2 || weight->constant->count() == 0 || groups < 1) return std::nullopt;
  const bool transposed = name.starts_with("conv_transpose");
  const int64_t in = transposed ? dims[0] : dims[1] * groups;
  const int64_t out = transposed ? dims[1] * groups : dims[0];
  if (bias != nullptr && bias->constant->dims != std::vector{out}) return std::nullopt;
  ModuleSpec spec{.inputs = {"input"}, .short_name = "conv"};
  spec.type = fmt::format("nn.Conv{}{}d", transposed ? "Transpose" : "", rank);
  spec.arguments = fmt::format("{}, {}, {}", in, out, python_pair({dims.begin() + 2, dims.end()}));
  spec.arguments += transposed ? window_keywords(e, {"stride", "padding", "output_padding", "groups", "dilation"})
                               : window_keywords(e, {"stride", "padding", "dilation", "groups"});
  if (bias == nullptr) spec.arguments += ", bias=False";
  spec.weights.push_back({"weight", weight});
  if (bias != nullptr) spec.weights.push_back({"bias", bias});
  return spec;
}

namespace {

constexpr OpsetStep kConvHistory[] = {{.to = 11}, {.to = 22, .adds = kBFloat16}};

constexpr std::string_view kRankNote = "over one to three spatial dimensions, as in PyTorch";

constexpr OnnxOp kConvOnnx[] = {
    {.sig = "Conv(T X, T W, T? B, *, str auto_pad=\"NOTSET\", ints? dilations, int group=1, ints? kernel_shape, "
            "ints? pads, ints? strides) -> T Y",
     .since = 1,
     .traits = kSumsProducts | kForwardsWeight,
     .zeros = {1 << 2},
     .history = kConvHistory,
     .infer = infer_conv,
     .sizes = sizes_of_conv<1>,
     .open = open_samples,
     .eval = eval_conv,
     .lower = lower_conv,
     .note = kRankNote,
     .expand = expand_conv_by_rank},
    {.sig = "ConvTranspose(T X, T W, T? B, *, str auto_pad=\"NOTSET\", ints? dilations, int group=1, "
            "ints? kernel_shape, ints? output_padding, ints? output_shape, ints? pads, ints? strides) -> T Y",
     .since = 1,
     .traits = kSumsProducts | kForwardsWeight,
     .zeros = {1 << 2},
     .history = kConvHistory,
     .infer = infer_conv_transpose,
     .sizes = sizes_of_channels,
     .open = open_samples,
     .eval = eval_conv_transpose,
     .lower = lower_conv_transpose,
     .note = kRankNote,
     .expand = expand_conv_by_rank},
};

constexpr AtenOp kConvAten[] = {
    {.sig = "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
            "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
     .types = types_conv,
     .low_precision = true,
     .emit = emit_conv,
     .module = module_conv,
     .raise = raise_conv,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
            "padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
     .types = types_conv,
     .layout = Layout::Channels,
     .low_precision = true,
     .emit = emit_conv,
     .module = module_conv,
     .raise = raise_conv,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] "
            "padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
     .types = types_conv,
     .layout = Layout::Channels,
     .low_precision = true,
     .emit = emit_conv,
     .module = module_conv,
     .raise = raise_conv,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] "
            "padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
     .types = types_conv_transpose,
     .low_precision = true,
     .emit = emit_conv,
     .module = module_conv,
     .raise = raise_conv_transpose,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
            "SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> "
            "Tensor",
     .types = types_conv_transpose,
     .layout = Layout::Channels,
     .low_precision = true,
     .emit = emit_conv,
     .module = module_conv,
     .raise = raise_conv_transpose,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
            "SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, "
            "1, 1]) -> Tensor",
     .types = types_conv_transpose,
     .layout = Layout::Channels,
     .low_precision = true,
     .emit = emit_conv,
     .module = module_conv,
     .raise = raise_conv_transpose,
     .raise_complex = raise_products_of_parts},
};

}  // namespace

extern const OpFamily kConvOps;
constinit const OpFamily kConvOps{"conv", kConvOnnx, kConvAten};

}  // namespace tonnx
