// batch.cpp - normalisation over the batch or over neighbouring channels: BatchNormalization, LRN,
// LpNormalization.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/size_node.h"
#include "ops/norm/identity_affine.h"
#include "ops/norm/rows.h"
#include "ops/reduce/rows.h"

namespace tonnx {
namespace {

void infer_batch_norm(InferNode& n) {
  n.set(0, n.type("X"));
  const Shape* x = n.find_shape("X");
  require(x == nullptr || !x->empty(), "the input has no dimensions");
  const Dim channels = x == nullptr ? n.fresh() : x->size() == 1 ? Dim(1) : (*x)[1];
  for (const char* name : {"scale", "B", "input_mean", "input_var"}) {
    const Shape* shape = n.find_shape(name);
    if (shape == nullptr) continue;
    require(shape->size() == 1, "input '{}' has {} dimensions where one is needed", name, shape->size());
    require(x == nullptr || !(*shape)[0].is_constant() || !channels.is_constant() || (*shape)[0] == channels,
            "input '{}' has {} elements where the input has {} channels", name, (*shape)[0].text(), channels.text());
  }
  if (n.output_count() > 1) n.set(1, n.type("input_mean"));
  if (n.output_count() > 2) n.set(2, n.type("input_var"));
}

/// The number with few digits that a file of 32 bits stands for: 0.1 for 1 - 0.9, 1e-05 for 1.0000001e-05.
double tidy(double value) {
  const double few = std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr);
  return std::abs(few - value) <= std::abs(value) * 3e-7 ? few : value;
}

/// The statistics of this batch, and those that run along with it, as ONNX has them: of the variance without Bessel's
/// correction, which PyTorch's own running variance has.
Values lower_training_batch_norm(const OnnxNode& n, AtenBuilder& aten, const std::vector<Value*>& weights) {
  Value* x = n.input("X");
  const double momentum = tidy(n.f("momentum"));
  Value* y = aten("batch_norm", x, weights[0], weights[1], nullptr, nullptr, true, 0.0, n.f("epsilon"), true);
  Values outputs{y, nullptr, nullptr};
  std::vector<int64_t> dims;
  for (int64_t dim = 0; (n.wants_output(1) || n.wants_output(2)) && dim < n.rank("X"); ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  const auto running = [&](Value* old, Value* now) {
    return aten("add.Tensor", aten("mul.Scalar", old, momentum), aten("mul.Scalar", now, tidy(1.0 - momentum)));
  };
  const DType dtype = n.dtype("input_mean");
  Value* wide = n.dtype("X") == dtype ? x : aten("to.dtype", x, dtype);
  if (n.wants_output(1)) outputs[1] = running(n.input("input_mean"), aten("mean.dim", wide, dims));
  if (n.wants_output(2))
    outputs[2] = running(n.input("input_var"), aten("var.correction", wide, dims, Kw{"correction", 0}));
  return outputs;
}

/// Statistics are no parameters. An exporter that keeps one of several equal tensors may have made them one with a
/// weight, and they are the layer's own again.
Value* own_statistics(const OnnxNode& n, AtenBuilder& aten, size_t index, const char* name, const char* hint) {
  const Value& given = *n.node().input(index);
  const bool is_shared = std::any_of(given.uses.begin(), given.uses.end(), [](const Use& use) {
    return use.user == nullptr || use.user->op != "BatchNormalization" || use.index < 3;
  });
  Value* value = given.constant && is_shared ? aten.constant(given.constant, hint) : n.input(name);
  value->trainable = false;
  return value;
}

Values lower_batch_norm(const OnnxNode& n, AtenBuilder& aten) {
  std::vector<Value*> weights{n.input("scale"), n.input("B"), own_statistics(n, aten, 3, "input_mean", "running_mean"),
                              own_statistics(n, aten, 4, "input_var", "running_var")};
  const double epsilon = tidy(n.f("epsilon"));
  // PyTorch takes weights of 32 bits beside an input of 16, and otherwise one type for all
  const DType dtype = n.dtype("X");
  const bool is_half = dtype == DType::Float16 || dtype == DType::BFloat16;
  const bool is_mixed = is_half && n.dtype("scale") == DType::Float32 && n.dtype("input_mean") == DType::Float32;
  for (size_t i = 0; i < weights.size() && !is_mixed; ++i) {
    const DType own = n.dtype(i < 2 ? "scale" : "input_mean");
    if (own != dtype && own != DType::Undefined && dtype != DType::Undefined)
      weights[i] = aten("to.dtype", weights[i], dtype);
  }
  if (n.flag("training_mode")) return lower_training_batch_norm(n, aten, weights);
  if (is_identity_affine(weights[0], weights[1])) weights[0] = weights[1] = nullptr;
  Value* x = n.input("X");
  const bool is_flat = n.find_rank("X") == 1;  // one channel for all
  if (is_flat) x = aten("unsqueeze", x, 1);
  Value* y = aten("batch_norm", x, weights[0], weights[1], weights[2], weights[3], false, tidy(1.0 - n.f("momentum")),
                  epsilon, true);  // PyTorch's momentum is the weight of the new
  if (is_flat) y = aten("squeeze.dim", y, 1);
  return {y, n.input("input_mean"), n.input("input_var")};
}

bool expand_batch_norm(const NodeView& n, OnnxEdit& edit) {
  const bool trains = n.flag("training_mode") && (n.wants_output(1) || n.wants_output(2));
  return trains && choose_rank(edit, n, {"X"}, from_to(2, 5));
}

void down_consumed_inputs(OnnxEdit& edit) {
  edit.node().set_attribute("consumed_inputs", std::vector<int64_t>{0, 0, 0, 1, 1}, AttrType::Ints);
}

/// Whether the node trained was once told by the outputs that it has.
void down_is_test(OnnxEdit& edit) { edit.node().set_attribute("is_test", int64_t{edit.node().outputs().size() == 1}); }

/// Without `spatial` every element of a plane had statistics of its own: the plane is a part of the channels.
void up_spatial(OnnxEdit& edit) {
  const bool spatial = edit.i("spatial", 1) != 0;
  drop_attribute(edit, "spatial");
  if (spatial || edit.rank(0) == 2) return;
  Node& node = edit.node();
  if (node.outputs().size() > 1) edit.cannot("it trains with statistics for each element");
  Value* x = node.input(0);
  node.set_input(0, edit.before("Flatten", {x}, {{"axis", int64_t{1}}}));
  for (size_t i = 1; i < 5; ++i) {
    if (node.input(i) == nullptr) continue;
    node.set_input(i, edit.before("Reshape", {node.input(i), edit.ints({-1}, "shape")}));
  }
  Value* shape = edit.before("Shape", {x});
  edit.after(0, "Reshape", {nullptr, shape});
}

void up_training_mode(OnnxEdit& edit) {
  Node& node = edit.node();
  bool trains = false;
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    const bool used = node.output(i) != nullptr && !node.output(i)->uses.empty();
    if (used && i > 2) edit.cannot("its outputs saved_mean and saved_var have no successors");
    trains = trains || used;
  }
  if (node.outputs().size() > 3) node.resize_outputs(3);
  if (trains) node.set_attribute("training_mode", int64_t{1});
}

void down_one_type(OnnxEdit& edit) {
  const Value* x = edit.node().input(0);
  for (const Value* input : edit.node().inputs()) {
    if (x && input && input->type.dtype != x->type.dtype)
      edit.cannot("opset 14 asks for one element type for all inputs");
  }
}

constexpr OpsetStep kBatchNormHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">, .down = down_consumed_inputs},
    {.to = 7, .up = up_drop<"is_test">, .down = down_is_test},
    {.to = 9, .up = up_spatial},
    {.to = 14, .up = up_training_mode, .down = down_require_default<"training_mode", 0>, .adds = kBFloat16},
    {.to = 15, .down = down_one_type},
};

/// `F.batch_norm(x, mean, var, weight, bias, eps=0.001)`
std::string emit_batch_norm(const Emission& e) {
  std::string text =
      fmt::format("F.batch_norm({}, {}, {}", e.text("input"), e.text("running_mean"), e.text("running_var"));
  if (e.has("weight") || e.has("bias")) text += fmt::format(", {}, {}", e.text("weight"), e.text("bias"));
  if (e.flag("training")) text += ", training=True";
  const std::string eps = e.text("eps");
  return text + (eps == "1e-05" ? ")" : ", eps=" + eps + ")");
}

std::optional<ModuleSpec> module_batch_norm(const Emission& e) {
  const auto rank = e.value("input")->type.rank().value_or(0);
  if (e.flag("training") || rank < 2 || rank > 5) return std::nullopt;
  ModuleSpec spec{.inputs = {"input"}, .short_name = "bn"};
  std::optional<int64_t> channels;
  const bool is_affine = e.has("weight") || e.has("bias");
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    if (!is_affine && !std::string_view(name).starts_with("running_")) continue;
    Value* value = e.value(name);
    if (value == nullptr || !value->constant || value->constant->dims.size() != 1) return std::nullopt;
    if (channels && *channels != value->constant->dims[0]) return std::nullopt;
    channels = value->constant->dims[0];
    spec.weights.push_back({name, value});
  }
  spec.type = fmt::format("nn.BatchNorm{}d", std::max<int64_t>(rank - 2, 1));
  spec.arguments = std::to_string(*channels);
  const std::string eps = e.text("eps"), momentum = e.text("momentum");
  if (eps != "1e-05") spec.arguments += ", eps=" + eps;
  if (momentum != "0.1") spec.arguments += ", momentum=" + momentum;
  if (!is_affine) spec.arguments += ", affine=False";
  return spec;
}

/// PyTorch's window reaches further to the front where the size is even, ONNX's to the back.
Values lower_lrn(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t size = n.i("size");
  require(size >= 1 && size < (int64_t{1} << 31), "the size of the window is {}", size);
  const bool is_even = size % 2 == 0;
  // on the CPU PyTorch has it for no numbers of 16 bits
  const DType dtype = n.dtype("X");
  const bool is_half = dtype == DType::Float16 || dtype == DType::BFloat16;
  Value* x = is_half ? aten("to.dtype", n.input("X"), DType::Float32) : n.input("X");
  if (is_even) x = aten("flip", x, std::vector<int64_t>{1});
  Value* y = aten("torch::local_response_norm", x, size, n.f("alpha"), n.f("beta"), n.f("bias"));
  if (is_even) y = aten("flip", y, std::vector<int64_t>{1});
  return is_half ? aten("to.dtype", y, dtype) : y;
}

/// `F.local_response_norm(x, 5, alpha=0.0001, beta=0.75, k=2.0)`
std::string emit_lrn(const Emission& e) {
  std::string text = fmt::format("F.local_response_norm({}, {}", e.text("input"), e.text("size"));
  for (const char* name : {"alpha", "beta", "k"}) {
    if (e.node().find_attribute(name) != nullptr) text += fmt::format(", {}={}", name, e.text(name));
  }
  return text + ")";
}

void infer_along_axis(InferNode& n) {
  infer_same_as_first(n);
  if (const auto rank = n.find_rank("input")) n.axis("axis", "input");
}

Values lower_lp_normalization(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t p = n.i("p");
  require(p == 1 || p == 2, "the order of the norm is {} where 1 or 2 is needed", p);
  Value* x = n.input("input");
  Value* norm = aten("linalg_vector_norm", x, p, std::vector<int64_t>{n.i("axis")}, true);
  // a norm of zero gives zero
  return aten("div.Tensor", x, aten("masked_fill.Scalar", norm, aten("eq.Scalar", norm, 0), 1.0));
}

constexpr OpsetStep kBFloat16In13[] = {{.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kBFloat16In22[] = {{.to = 22, .adds = kBFloat16}};

constexpr OnnxOp kNormBatchOnnx[] = {
    {.sig = "BatchNormalization(T X, T1 scale, T1 B, T2 input_mean, T2 input_var, *, float epsilon=1e-05, "
            "float momentum=0.9, int training_mode=0) -> (T Y, T2? running_mean, T2? running_var)",
     .since = 1,
     .history = kBatchNormHistory,
     .infer = infer_batch_norm,
     .sizes = sizes_of_channels,
     .open = open_samples,
     .eval = eval_batch_normalization,
     .lower = lower_batch_norm,
     .expand = expand_batch_norm},
    {.sig = "LRN(T X, *, float alpha=0.0001, float beta=0.75, float bias=1.0, int size) -> T Y",
     .since = 1,
     .history = kBFloat16In13,
     .infer = infer_same_as_first,
     .open = open_samples,
     .eval = eval_lrn,
     .lower = lower_lrn},
    {.sig = "LpNormalization(T input, *, int axis=-1, int p=2) -> T output",
     .since = 1,
     .history = kBFloat16In22,
     .infer = infer_along_axis,
     .open = open_along_axis,
     .eval = eval_lp_normalization,
     .lower = lower_lp_normalization},
};

constexpr AtenOp kNormBatchAten[] = {
    {.sig = "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
            "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     .types = types_as_input,
     .layout = Layout::Channels,
     .emit = emit_batch_norm,
     .module = module_batch_norm,
     .raise = raise_batch_norm},
    {.sig = "torch::local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> "
            "Tensor",
     .emit = emit_lrn},
    {.sig = "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
            "Tensor",
     .types = types_mean,
     .python = ".var",
     .raise = raise_var,
     .raise_complex = raise_sum_of_parts},
    {.sig = "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
            "Tensor",
     .types = types_mean,
     .python = ".std",
     .raise = raise_var,
     .raise_complex = raise_length_of_parts},
};

}  // namespace

extern const OpFamily kNormBatchOps;
constinit const OpFamily kNormBatchOps{"norm_batch", kNormBatchOnnx, kNormBatchAten};

}  // namespace tonnx
