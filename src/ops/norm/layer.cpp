// layer.cpp - normalisation inside each sample: InstanceNormalization, LayerNormalization, GroupNormalization,
// RMSNormalization, MeanVarianceNormalization.
#include <algorithm>

#include "base/error.h"
#include "base/join.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/size_node.h"
#include "ops/norm/identity_affine.h"
#include "ops/norm/rows.h"

namespace tonnx {
namespace {

/// One element, which PyTorch refuses to normalise, is its own mean; what is no number stays none.
Value* normalized_element(AtenBuilder& aten, Value* x, Value* bias, size_t rank) {
  std::vector<int64_t> sizes(rank - 1, 1);
  sizes[0] = -1;
  return aten("add.Tensor", aten("sub.Tensor", x, x), aten("reshape", bias, sizes));
}

bool is_one(const Dim& size) { return size.is(1); }

Values lower_instance_norm(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  Value* scale = n.input("scale");
  Value* bias = n.input("B");
  const Shape* shape = n.find_shape("input");
  require(shape == nullptr || shape->size() >= 2, "the input has {} dimensions where at least two are needed",
          shape ? shape->size() : 0);
  const double epsilon = n.f("epsilon");
  if (shape != nullptr && std::all_of(shape->begin() + 2, shape->end(), is_one))
    return normalized_element(aten, x, bias, shape->size());
  if (is_identity_affine(scale, bias)) scale = bias = nullptr;
  return aten("instance_norm", x, scale, bias, nullptr, nullptr, true, 0.1, epsilon, true);
}

/// `F.instance_norm(x, weight=scale, bias=bias, eps=0.001)`; by the statistics that were kept where it does not use the
/// input's own.
std::string emit_instance_norm(const Emission& e) {
  std::string text = "F.instance_norm(" + e.text("input");
  if (!e.flag("use_input_stats")) text += fmt::format(", {}, {}", e.text("running_mean"), e.text("running_var"));
  if (e.has("weight")) text += ", weight=" + e.text("weight");
  if (e.has("bias")) text += ", bias=" + e.text("bias");
  if (!e.flag("use_input_stats")) text += ", use_input_stats=False";
  const std::string eps = e.text("eps");
  return text + (eps == "1e-05" ? "" : ", eps=" + eps) + ")";
}

bool is_vector(const Value* value) { return value && value->constant && value->constant->dims.size() == 1; }

std::optional<ModuleSpec> module_instance_norm(const Emission& e) {
  const auto rank = e.value("input")->type.rank().value_or(0);
  if (rank < 3 || rank > 5) return std::nullopt;
  const bool is_affine = e.has("weight") || e.has("bias"), keeps = !e.flag("use_input_stats");
  ModuleSpec spec{.inputs = {"input"}, .short_name = "norm"};
  if (is_affine) spec.weights = {{"weight", e.value("weight")}, {"bias", e.value("bias")}};
  if (keeps) {
    spec.weights.push_back({"running_mean", e.value("running_mean")});
    spec.weights.push_back({"running_var", e.value("running_var")});
  }
  std::optional<int64_t> channels;
  for (const ModuleSpec::Weight& weight : spec.weights) {
    if (!is_vector(weight.value)) return std::nullopt;
    if (channels && *channels != weight.value->constant->dims[0]) return std::nullopt;
    channels = weight.value->constant->dims[0];
  }
  if (!channels) return std::nullopt;  // a function, where it has nothing of its own
  const std::string eps = e.text("eps"), momentum = e.text("momentum");
  spec.type = fmt::format("nn.InstanceNorm{}d", rank - 2);
  spec.arguments = std::to_string(*channels);
  if (eps != "1e-05") spec.arguments += ", eps=" + eps;
  if (keeps && momentum != "0.1") spec.arguments += ", momentum=" + momentum;
  if (is_affine) spec.arguments += ", affine=True";
  if (keeps) spec.arguments += ", track_running_stats=True";
  return spec;
}

void infer_layer_norm(InferNode& n) {
  n.set(0, n.type("X"));
  const int64_t stash = n.i("stash_type");
  require(stash == 1 || stash == 16, "stash_type is {}", stash);
  std::optional<Shape> reduced;
  if (const Shape* x = n.find_shape("X")) {
    reduced = *x;
    std::fill(reduced->begin() + n.axis("axis", "X"), reduced->end(), Dim(1));
  }
  const DType dtype = stash == 16 ? DType::BFloat16 : DType::Float32;
  for (size_t i = 1; i < n.output_count(); ++i) n.set(i, dtype, reduced);
}

/// The sizes of the dimensions from the axis on. Where the rank is not known they are those of the scale.
IntArgs normalized_sizes(const OnnxNode& n, const char* scale_name) {
  IntArgs sizes;
  const char* from = n.find_shape("X") ? "X" : scale_name;
  const int64_t rank = n.rank(from);
  for (int64_t dim = n.find_shape("X") ? n.axis("axis", "X") : 0; dim < rank; ++dim) sizes.push_back(n.size(from, dim));
  return sizes;
}

/// Whether a weight has exactly the sizes that are normalised; it may be less where it is broadcast.
bool fits(const OnnxNode& n, const char* name, const char* scale_name) {
  const Shape* shape = n.find_shape(name);
  const Shape* x = n.find_shape("X");
  if (shape == nullptr) return false;
  if (x == nullptr) return n.find_shape(scale_name) != nullptr && *shape == *n.find_shape(scale_name);
  return std::equal(shape->begin(), shape->end(), x->begin() + n.axis("axis", "X"), x->end());
}

/// Whether the sizes that are normalised can be named: the rank says them, or a scale of as many dimensions does.
bool names_sizes(const OnnxNode& n, const char* scale_name) {
  const int64_t axis = n.i("axis");
  const auto rank = n.find_rank(scale_name);
  return n.find_shape("X") != nullptr || (axis < 0 && rank == -axis);
}

/// The dimensions from the axis on where the rank is not known: from the back, or as the run counts them.
Arg normalized_dims(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t axis = n.i("axis");
  require(axis >= -kMaxRank && axis < kMaxRank, "axis {} is out of range", axis);
  if (axis >= 0) return aten("tonnx::axes", n.input("X"), axis);
  std::vector<int64_t> dims;
  for (int64_t dim = axis; dim < 0; ++dim) dims.push_back(dim);
  return dims;
}

/// LayerNormalization of an input whose rank only the run knows, by its definition.
Values lower_layer_norm_of_any_rank(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("X"), stash = n.i("stash_type") == 16 ? DType::BFloat16 : DType::Float32;
  const bool widens = dtype != stash && dtype != DType::Float64;
  Value* x = widens ? aten("to.dtype", n.input("X"), stash) : n.input("X");
  const Arg dims = normalized_dims(n, aten);
  Value* mean = aten("mean.dim", x, dims, true);
  Value* variance = aten("var.correction", x, dims, Kw{"correction", 0}, Kw{"keepdim", true});
  Value* inverse = aten("rsqrt", aten("add.Scalar", variance, n.f("epsilon")));
  Value* y = aten("mul.Tensor", aten("sub.Tensor", x, mean), inverse);
  y = aten("mul.Tensor", widens ? aten("to.dtype", y, dtype) : y, n.input("Scale"));
  if (Value* bias = n.find_input("B")) y = aten("add.Tensor", y, bias);
  return {y, mean, inverse};
}

Values lower_layer_norm(const OnnxNode& n, AtenBuilder& aten) {
  if (!names_sizes(n, "Scale")) return lower_layer_norm_of_any_rank(n, aten);
  Value* x = n.input("X");
  Value* scale = n.input("Scale");
  Value* bias = n.find_input("B");
  const DType stash = n.i("stash_type") == 16 ? DType::BFloat16 : DType::Float32;
  const double epsilon = n.f("epsilon");
  const IntArgs sizes = normalized_sizes(n, "Scale");
  Values outputs{nullptr, nullptr, nullptr};
  if (fits(n, "Scale", "Scale") && (bias == nullptr || fits(n, "B", "Scale"))) {
    if (is_placeholder(bias, 0)) bias = nullptr;
    if (is_identity_affine(scale, bias)) scale = nullptr;
    outputs[0] = aten("layer_norm", x, sizes, scale, bias, epsilon);
  } else {
    Value* y = aten("mul.Tensor", aten("layer_norm", x, sizes, nullptr, nullptr, epsilon), scale);
    outputs[0] = bias ? aten("add.Tensor", y, bias) : y;
  }
  if (!n.wants_output(1) && !n.wants_output(2)) return outputs;
  std::vector<int64_t> dims;
  for (size_t i = sizes.size(); i > 0; --i) dims.push_back(-static_cast<int64_t>(i));
  Value* wide = n.dtype("X") == stash ? x : aten("to.dtype", x, stash);
  if (n.wants_output(1)) outputs[1] = aten("mean.dim", wide, dims, true);
  if (n.wants_output(2)) {
    Value* variance = aten("var.correction", wide, dims, Kw{"correction", 0}, Kw{"keepdim", true});
    outputs[2] = aten("rsqrt", aten("add.Scalar", variance, epsilon));
  }
  return outputs;
}

/// `, eps=1e-12`, where that is not what PyTorch takes anyway. An RMSNorm takes what its element type can tell from 0.
std::string eps_keyword(const Emission& e) {
  if (e.node().find_attribute("eps") == nullptr) return "";
  const std::string eps = e.text("eps");
  return eps == "1e-05" && e.signature().name != "rms_norm" ? "" : ", eps=" + eps;
}

/// `F.layer_norm(x, (768,), weight, bias, eps=1e-12)`
std::string emit_layer_norm(const Emission& e) {
  std::string text =
      fmt::format("F.{}({}, {}", e.signature().name, e.text("input"), python_tuple(e.items("normalized_shape")));
  for (const char* name : {"weight", "bias"}) {
    if (e.signature().find_input(name) < 0 || !e.has(name)) continue;
    const bool named = name == std::string_view("bias") && !e.has("weight");
    text += named ? ", bias=" + e.text(name) : ", " + e.text(name);
  }
  text += eps_keyword(e);
  return text + ")";
}

std::optional<ModuleSpec> module_layer_norm(const Emission& e) {
  Value* weight = e.value("weight");
  const bool has_bias = e.signature().find_input("bias") >= 0;
  Value* bias = has_bias ? e.value("bias") : nullptr;
  const auto sizes = e.find_ints("normalized_shape");
  if (weight == nullptr || !weight->constant || (bias && !bias->constant) || !sizes) return std::nullopt;
  if (weight->constant->dims != *sizes || (bias && bias->constant->dims != *sizes)) return std::nullopt;
  ModuleSpec spec{.type = has_bias ? "nn.LayerNorm" : "nn.RMSNorm", .inputs = {"input"}, .short_name = "norm"};
  spec.arguments = sizes->size() == 1 ? std::to_string((*sizes)[0]) : fmt::format("({})", joined(*sizes, ", "));
  spec.arguments += eps_keyword(e);
  if (has_bias && bias == nullptr) spec.arguments += ", bias=False";
  spec.weights.push_back({"weight", weight});
  if (bias) spec.weights.push_back({"bias", bias});
  return spec;
}

void infer_rms_norm(InferNode& n) {
  n.set(0, n.dtype("scale"), n.type("X").shape);
  if (n.find_shape("X") != nullptr) n.axis("axis", "X");
}

Values lower_rms_norm(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("X");
  Value* scale = n.input("scale");
  const int64_t stash_type = n.i("stash_type");
  require(stash_type == 1 || stash_type == 10 || stash_type == 11 || stash_type == 16, "stash_type is {}", stash_type);
  const auto stash = static_cast<DType>(stash_type);
  const double epsilon = n.f("epsilon");
  const DType from = n.dtype("X"), to = n.dtype("scale");
  if (!names_sizes(n, "scale")) {
    if (from != stash) x = aten("to.dtype", x, stash);
    Value* mean = aten("mean.dim", aten("mul.Tensor", x, x), normalized_dims(n, aten), true);
    Value* y = aten("mul.Tensor", x, aten("rsqrt", aten("add.Scalar", mean, epsilon)));
    return aten("mul.Tensor", to != stash ? aten("to.dtype", y, to) : y, scale);
  }
  const IntArgs sizes = normalized_sizes(n, "scale");
  // PyTorch computes in 32 bits where the input has 16
  const bool same = from == to && (stash == from || (stash == DType::Float32 && from != DType::Float64));
  if (same && fits(n, "scale", "scale")) return aten("rms_norm", x, sizes, scale, epsilon);
  if (from != stash && !same) x = aten("to.dtype", x, stash);
  Value* y = aten("rms_norm", x, sizes, nullptr, epsilon);
  if (to != stash && !same) y = aten("to.dtype", y, to);
  return aten("mul.Tensor", y, scale);
}

void infer_group_norm(InferNode& n) {
  infer_same_as_first(n);
  const int64_t groups = n.i("num_groups");
  require(groups >= 1, "num_groups is {}", groups);
  const Shape* x = n.find_shape("X");
  if (x == nullptr) return;
  require(x->size() >= 2, "the input has {} dimensions where at least two are needed", x->size());
  const auto channels = (*x)[1].constant();
  require(!channels || *channels % groups == 0, "{} channels do not divide into {} groups", channels.value_or(0),
          groups);
}

Values lower_group_norm(const OnnxNode& n, AtenBuilder& aten) {
  n.i("stash_type");  // PyTorch computes in 32 bits where the input has 16
  Value* x = n.input("X");
  Value* scale = n.input("scale");
  Value* bias = n.input("bias");
  const int64_t groups = n.i("num_groups");
  const double epsilon = n.f("epsilon");
  const Shape* shape = n.find_shape("X");
  // one sample, and groups of one channel of one element
  if (shape != nullptr && shape->size() >= 2 && is_one(shape->front()) && (*shape)[1].is(groups) &&
      std::all_of(shape->begin() + 2, shape->end(), is_one))
    return normalized_element(aten, x, bias, shape->size());
  return aten("group_norm", x, groups, scale, bias, epsilon);
}

std::string emit_group_norm(const Emission& e) {
  std::string text = fmt::format("F.group_norm({}, {}", e.text("input"), e.text("num_groups"));
  for (const char* name : {"weight", "bias"}) {
    if (e.node().find_attribute(name) != nullptr) text += fmt::format(", {}={}", name, e.text(name));
  }
  return text + eps_keyword(e) + ")";
}

std::optional<ModuleSpec> module_group_norm(const Emission& e) {
  Value* weight = e.value("weight");
  Value* bias = e.value("bias");
  if (!is_vector(weight) || !is_vector(bias)) return std::nullopt;
  const int64_t channels = weight->constant->dims[0];
  const int64_t groups = e.find_int("num_groups").value_or(0);
  if (groups < 1 || channels % groups != 0 || bias->constant->dims[0] != channels) return std::nullopt;
  ModuleSpec spec{.type = "nn.GroupNorm", .inputs = {"input"}, .short_name = "norm"};
  spec.arguments = fmt::format("{}, {}", groups, channels);
  spec.arguments += eps_keyword(e);
  spec.weights = {{"weight", weight}, {"bias", bias}};
  return spec;
}

std::optional<int64_t> find_channels(OnnxEdit& edit) {
  const Value* x = edit.node().input(0);
  if (x == nullptr || !x->type.shape || x->type.shape->size() < 2) return std::nullopt;
  return (*x->type.shape)[1].constant();
}

/// Opset 18 had one scale for each group, opset 21 has one for each channel.
void up_scale_per_channel(OnnxEdit& edit) {
  Node& node = edit.node();
  const int64_t groups = edit.i("num_groups", 0);
  const auto channels = find_channels(edit);
  if (!channels)
    edit.cannot("the number of channels is not known, so that the scales of the groups cannot be repeated");
  require(groups >= 1 && *channels % groups == 0, "{} channels do not divide into {} groups", *channels, groups);
  const int64_t each = *channels / groups;
  if (each == 1) return;
  for (size_t i = 1; i < 3; ++i) {
    Value* weight = node.input(i);
    if (weight == nullptr) continue;
    const auto values = edit.const_floats(i);
    if (values && static_cast<int64_t>(values->size()) == groups) {
      std::vector<double> repeated;
      for (const double value : *values) repeated.insert(repeated.end(), static_cast<size_t>(each), value);
      node.set_input(
          i, edit.constant(make_floats(weight->constant->dtype, {*channels}, repeated), i == 1 ? "scale" : "bias"));
      continue;
    }
    Value* column = edit.before("Reshape", {weight, edit.ints({groups, 1}, "shape")});
    Value* table = edit.before("Expand", {column, edit.ints({groups, each}, "shape")});
    node.set_input(i, edit.before("Reshape", {table, edit.ints({*channels}, "shape")}));
  }
}

Values lower_mean_variance_norm(const OnnxNode& n, AtenBuilder& aten) {
  std::vector<int64_t> dims = n.ints("axes");
  if (const auto rank = n.find_rank("X")) {
    for (const int64_t dim : dims) NodeView::normalized(dim, *rank);
  }
  Value* x = n.input("X");
  Value* centred = aten("sub.Tensor", x, aten("mean.dim", x, dims, true));
  Value* deviation = aten("std.correction", x, dims, Kw{"correction", 0}, Kw{"keepdim", true});
  return aten("div.Tensor", centred, aten("add.Scalar", deviation, 1e-9));
}

constexpr OpsetStep kInstanceNormHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 22, .adds = kBFloat16},
};
constexpr OpsetStep kGroupNormHistory[] = {{.to = 21, .up = up_scale_per_channel, .down = down_group_norm}};
/// Its meaning is a function from here on, which onnx expands without the default.
void up_mean_variance(OnnxEdit& edit) {
  if (edit.node().find_attribute("axes") == nullptr)
    edit.node().set_attribute("axes", std::vector<int64_t>{0, 2, 3}, AttrType::Ints);
}

constexpr OpsetStep kMeanVarianceHistory[] = {{.to = 13, .up = up_mean_variance, .adds = kBFloat16}};

constexpr OnnxOp kNormLayerOnnx[] = {
    {.sig = "InstanceNormalization(T input, T scale, T B, *, float epsilon=1e-05) -> T output",
     .since = 1,
     .history = kInstanceNormHistory,
     .infer = infer_same_as_first,
     .sizes = sizes_of_channels,
     .open = open_samples,
     .eval = eval_instance_normalization,
     .lower = lower_instance_norm},
    {.sig = "LayerNormalization(T X, T Scale, T? B, *, int axis=-1, float epsilon=1e-05, int stash_type=1) "
            "-> (T Y, U? Mean, U? InvStdDev)",
     .since = 17,
     .infer = infer_layer_norm,
     .sizes = sizes_of_last_axis,
     .open = open_from_axis,
     .eval = eval_layer_normalization,
     .lower = lower_layer_norm,
     .in_older = layer_norm_in_older},
    {.sig = "GroupNormalization(T X, T scale, T bias, *, float epsilon=1e-05, int num_groups, int stash_type=1) -> T Y",
     .since = 18,
     .history = kGroupNormHistory,
     .infer = infer_group_norm,
     .sizes = sizes_of_channels,
     .open = open_samples,
     .eval = eval_group_normalization,
     .lower = lower_group_norm,
     .in_older = group_norm_in_older},
    {.sig = "RMSNormalization(T X, V scale, *, int axis=-1, float epsilon=1e-05, int stash_type=1) -> V Y",
     .since = 23,
     .infer = infer_rms_norm,
     .sizes = sizes_of_last_axis,
     .open = open_from_axis,
     .eval = eval_rms_normalization,
     .lower = lower_rms_norm,
     .in_older = rms_norm_in_older},
    {.sig = "MeanVarianceNormalization(T X, *, ints axes=[0, 2, 3]) -> T Y",
     .since = 9,
     .history = kMeanVarianceHistory,
     .infer = infer_same_as_first,
     .eval = eval_mean_variance_normalization,
     .lower = lower_mean_variance_norm},
};

constexpr AtenOp kNormLayerAten[] = {
    {.sig = "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
            "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     .types = types_as_input,
     .emit = emit_instance_norm,
     .module = module_instance_norm,
     .raise = raise_instance_norm},
    {.sig = "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
            "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
     .types = types_as_input,
     .emit = emit_layer_norm,
     .module = module_layer_norm,
     .raise = raise_layer_norm},
    {.sig = "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
     .types = types_as_input,
     .layout = Layout::Channels,
     .emit = emit_layer_norm,
     .module = module_layer_norm,
     .raise = raise_rms_norm},
    {.sig = "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
            "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
     .types = types_as_input,
     .layout = Layout::Channels,
     .emit = emit_group_norm,
     .module = module_group_norm,
     .raise = raise_group_norm},
};

}  // namespace

extern const OpFamily kNormLayerOps;
constinit const OpFamily kNormLayerOps{"norm_layer", kNormLayerOnnx, kNormLayerAten};

}  // namespace tonnx
