// tensor.cpp - operators of com.microsoft that the standard has under another name or with other arguments, and
// linear algebra.
#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/linalg/rows.h"
#include "ops/microsoft/row.h"

namespace tonnx {
namespace {

/// The standard's operator of that name, with the same inputs, outputs and attributes.
template <FixedText Name>
bool expand_same(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with(make.all(n.node().outputs().size(), Name.value, n.node().inputs(), n.node().attributes));
}

bool expand_expand_dims(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  Value* axis = make.reshape(make.cast(n.node().input(1), DType::Int64), {1});
  return edit.replace_with({make("Unsqueeze", {n.node().input(0), axis})});
}

/// In the order in which elements first occur.
bool expand_unique(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const auto results = make.all(4, "Unique", {n.node().input(0)}, {{"sorted", int64_t{0}}});
  return edit.replace_with({results[0], results[2], results[3]});
}

bool expand_range(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const auto scalar = [&](Value* x) { return x->type.rank() == 0 ? x : make.reshape(x, {}); };
  const Node& node = n.node();
  Value* delta = node.input(2) ? scalar(node.input(2)) : make.number(n.dtype("start"), 1.0);
  return edit.replace_with({make("Range", {scalar(node.input(0)), scalar(node.input(1)), delta})});
}

bool expand_grid_sample(const NodeView& n, OnnxEdit& edit) {
  const std::string mode = n.s("mode");
  const std::string now = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  return edit.replace_with(
      {edit.before("GridSample", {n.node().input(0), n.node().input(1)},
                   {{"mode", now}, {"padding_mode", n.s("padding_mode")}, {"align_corners", n.i("align_corners")}})});
}

/// The elements of the last dimension are the real and the imaginary part.
bool expand_complex_mul(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const bool conjugate = n.entry().signature.name == "ComplexMulConj";
  const auto a = make.split(n.node().input(0), -1, {1, 1}), b = make.split(n.node().input(1), -1, {1, 1});
  const auto product = [&](Value* x, Value* y) { return make("Mul", {x, y}); };
  Value* real = make(conjugate ? "Add" : "Sub", {product(a[0], b[0]), product(a[1], b[1])});
  Value* imaginary = conjugate ? make("Sub", {product(a[1], b[0]), product(a[0], b[1])})
                               : make("Add", {product(a[0], b[1]), product(a[1], b[0])});
  return edit.replace_with({make.concat({real, imaginary}, -1)});
}

bool expand_is_all_finite(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  Value* all = nullptr;
  for (Value* x : n.node().inputs()) {
    Value* bad = n.flag("isnan_only")   ? make("IsNaN", {x})
                 : n.flag("isinf_only") ? make("IsInf", {x})
                                        : make("Or", {make("IsInf", {x}), make("IsNaN", {x})});
    Value* any = make("ReduceMax", {make.cast(bad, DType::Int32)}, {{"keepdims", int64_t{0}}});
    all = all ? make("Max", {all, any}) : any;
  }
  require(all != nullptr, "it has no inputs");
  return edit.replace_with({make("Equal", {all, make.number(DType::Int32, 0)})});
}

bool expand_reduce_sum_integer(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const DType wide = n.dtype("data") == DType::UInt8 ? DType::UInt32 : DType::Int32;
  Value* x = make.cast(n.node().input(0), wide);
  return edit.replace_with({make("ReduceSum", {x, make.ints(n.ints("axes"))}, {{"keepdims", n.i("keepdims")}})});
}

bool expand_torch_embedding(const NodeView& n, OnnxEdit& edit) {  // the rest is for the gradient
  return edit.replace_with({edit.before("Gather", {n.node().input(0), n.node().input(1)})});
}

/// One-sided, over the last dimensions of the signal.
bool expand_rfft(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  if (n.i("signal_ndim") != 1 || n.i("normalized") != 0 || n.i("onesided") != 1) {
    edit.cannot("it is not one-sided, normalised, or of several dimensions");
  }
  const bool inverse = n.entry().signature.name == "Irfft";
  Value* x = n.node().input(0);
  Value* axis = make.number(DType::Int64, -2);
  if (!inverse) {
    return edit.replace_with({make("DFT", {make.unsqueeze(x, {-1}), nullptr, axis}, {{"onesided", int64_t{1}}})});
  }
  Value* y = make("DFT", {x, nullptr, axis}, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}});
  return edit.replace_with({make.squeeze(y, {-1})});
}

bool expand_linear_attention(const NodeView& n, OnnxEdit& edit) {
  if (n.i("state_window") != 0) edit.cannot("it keeps more states than the last");
  std::vector<Attribute> attributes;
  for (const Attribute& attribute : n.node().attributes) {
    if (attribute.name != "state_window") attributes.push_back(attribute);
  }
  Expansion make(edit);
  const auto results = make.all(2, "LinearAttention", n.node().inputs(), attributes);
  return edit.replace_with(results);
}

bool expand_causal_conv(const NodeView& n, OnnxEdit& edit) {
  if (n.i("state_window") != 0 || n.i("ndim") != 1 || n.i("dilation") != 1 || n.i("channels_last") != 0) {
    edit.cannot("it is not a plain one over time");
  }
  Expansion make(edit);
  return edit.replace_with(make.all(2, "CausalConvWithState", n.node().inputs(), {{"activation", n.s("activation")}}));
}

/// What is left of an image without its borders: left, top, right and bottom.
bool expand_crop(const NodeView& n, OnnxEdit& edit) {
  const auto border = n.find_ints("border").value_or(std::vector<int64_t>{0, 0, 0, 0});
  require(border.size() == 4, "the border has {} elements", border.size());
  for (const int64_t size : border) require(size >= 0 && size < kToTheEnd, "a border is {}", size);
  std::vector<int64_t> ends{border[3] == 0 ? kToTheEnd : -border[3], border[2] == 0 ? kToTheEnd : -border[2]};
  if (const auto scale = n.find_ints("scale")) {
    require(scale->size() == 2 && (*scale)[0] >= 0 && (*scale)[1] >= 0, "the scale is no size");
    ends = {border[1] + std::min((*scale)[0], kToTheEnd / 2), border[0] + std::min((*scale)[1], kToTheEnd / 2)};
  }
  Expansion make(edit);
  Value* starts = make.ints({border[1], border[0]});
  return edit.replace_with({make("Slice", {n.node().input(0), starts, make.ints(ends), make.ints({2, 3})})});
}

Values lower_inverse(const OnnxNode& n, AtenBuilder& aten) { return aten("linalg_inv", n.input("X")); }

void infer_cdist(InferNode& n) {
  const Shape *a = n.find_shape("A"), *b = n.find_shape("B");
  require((!a || a->size() == 2) && (!b || b->size() == 2), "the distances of what is no list of points");
  n.set(0, n.dtype("A"), Shape{a ? (*a)[0] : n.fresh(), b ? (*b)[0] : n.fresh()});
}

Values lower_cdist(const OnnxNode& n, AtenBuilder& aten) {
  const std::string metric = n.s("metric");
  require(metric == "euclidean" || metric == "sqeuclidean", "the metric is '{}'", metric);
  Value* distance = aten("cdist", n.input("A"), n.input("B"));
  return metric == "euclidean" ? distance : aten("square", distance);
}

void infer_unfold(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  const int64_t size = n.i("size"), step = n.i("step");
  require(size >= 1 && step >= 1, "windows of {} every {}", size, step);
  if (shape == nullptr) return n.set(0, n.dtype("input"), std::nullopt);
  const int64_t axis = n.axis("dim", "input");
  Shape result = *shape;
  Dim& length = result[static_cast<size_t>(axis)];
  require(!length.is_constant() || *length.constant() >= size, "a window of {} is longer than its input", size);
  length = floor_div(length - Dim(size), Dim(step)) + Dim(1);
  result.push_back(Dim(size));
  n.set(0, n.dtype("input"), std::move(result));
}

Values lower_unfold(const OnnxNode& n, AtenBuilder& aten) {
  return aten("unfold", n.input("input"), n.i("dim"), n.i("size"), n.i("step"));
}

constexpr OnnxOp kMsTensorOnnx[] = {
    expanded_row("com.microsoft::Trilu(T X, tensor(int64)? k, *, int upper=1) -> T Y", expand_same<"Trilu">),
    expanded_row("com.microsoft::GatherND(T data, Tind indices) -> T output", expand_same<"GatherND">),
    expanded_row("com.microsoft::Pad(T data, tensor(int64) pads, T? value, *, str mode=\"constant\") -> T output",
                 expand_same<"Pad">),
    expanded_row("com.microsoft::SampleOp(T X) -> T Y", expand_same<"Identity">),
    expanded_row("com.microsoft::ExpandDims(T X, tensor(int32) axis) -> T Y", expand_expand_dims),
    expanded_row("com.microsoft::Unique(T x) -> (T y, tensor(int64) idx, tensor(int64) counts)", expand_unique),
    expanded_row("com.microsoft::Range(T start, T limit, T? delta) -> T Y", expand_range),
    expanded_row("com.microsoft::GridSample(T1 X, T1 Grid, *, int align_corners=0, str mode=\"bilinear\", "
                 "str padding_mode=\"zeros\") -> T2 Y",
                 expand_grid_sample),
    expanded_row("com.microsoft::ComplexMul(T A, T B) -> T C", expand_complex_mul),
    expanded_row("com.microsoft::ComplexMulConj(T A, T B) -> T C", expand_complex_mul),
    expanded_row("com.microsoft::IsAllFinite(V... input, *, int isinf_only=0, int isnan_only=0) -> T output",
                 expand_is_all_finite),
    expanded_row("com.microsoft::ReduceSumInteger(T1 data, *, ints axes, int keepdims) -> T2 reduced",
                 expand_reduce_sum_integer),
    expanded_row("com.microsoft::TorchEmbedding(T weight, tensor(int64) indices, tensor(int64)? padding_idx, "
                 "tensor(bool)? scale_grad_by_freq) -> T Y",
                 expand_torch_embedding),
    expanded_row("com.microsoft::Rfft(T X, *, int normalized=0, int onesided=1, int signal_ndim=1) -> T Y", expand_rfft,
                 "of signals of one dimension"),
    expanded_row("com.microsoft::Irfft(T X, *, int normalized=0, int onesided=1, int signal_ndim) -> T Y", expand_rfft,
                 "of signals of one dimension"),
    with(expanded_row("com.microsoft::LinearAttention(T query, T key, T value, S? past_state, T? decay, T? beta, *, "
                      "int chunk_size=64, int kv_num_heads, int q_num_heads, float scale=0.0, int state_window=0, "
                      "str update_rule=\"gated_delta\") -> (T output, S present_state)",
                      expand_linear_attention),
         {.traits = kSumsProducts}),
    with(
        expanded_row(
            "com.microsoft::CausalConvWithState(T input, T weight, T? bias, T? past_state, *, str activation=\"none\", "
            "int channels_last=0, int dilation=1, int ndim=1, int state_window=0) -> (T output, T present_state)",
            expand_causal_conv),
        {.traits = kSumsProducts}),
    nonstandard_row("Crop(T input, *, ints? border, ints? scale) -> T output", expand_crop),
    {.sig = "com.microsoft::Inverse(T X) -> T Y", .since = 1, .infer = infer_same_as_first, .lower = lower_inverse},
    {.sig = "com.microsoft::CDist(T A, T B, *, str metric=\"sqeuclidean\") -> T C",
     .since = 1,
     .infer = infer_cdist,
     .lower = lower_cdist},
    {.sig = "com.microsoft::UnfoldTensor(T input, *, int dim=-1, int size, int step=1) -> T output",
     .since = 1,
     .infer = infer_unfold,
     .lower = lower_unfold},
};

/// torch.cdist has words for the ways that the schema numbers.
std::string emit_cdist(const Emission& e) {
  constexpr std::string_view kModes[] = {"use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                                         "donot_use_mm_for_euclid_dist"};
  std::string text = fmt::format("torch.cdist({}, {}", e.text("x1"), e.text("x2"));
  if (e.node().find_attribute("p") != nullptr) text += ", p=" + e.text("p");
  const int64_t mode = e.find_int("compute_mode").value_or(0);
  if (mode == 1 || mode == 2) text += fmt::format(", compute_mode=\"{}\"", kModes[mode]);
  return text + ")";
}

constexpr AtenOp kMsTensorAten[] = {
    {.sig = "aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
     .types = types_cdist,
     .emit = emit_cdist,
     .raise = raise_cdist},
};

}  // namespace

extern const OpFamily kMsTensorOps;
constinit const OpFamily kMsTensorOps{"ms_tensor", kMsTensorOnnx, kMsTensorAten};

}  // namespace tonnx
