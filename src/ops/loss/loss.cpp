// loss.cpp - losses of classifiers: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/loss/rows.h"

namespace tonnx {
namespace {

constexpr std::string_view kReductions[] = {"none", "mean", "sum"};  // by PyTorch's own numbers

int64_t reduction_of(const NodeView& n) {
  const std::string name = n.s("reduction");
  for (int64_t i = 0; i < 3; ++i) {
    if (kReductions[i] == name) return i;
  }
  fail_invalid("the reduction is '{}'", name);
}

/// The loss of each element has the shape of the labels; a reduced one has none.
void infer_loss(InferNode& n, const char* scores, const char* labels) {
  const Shape* shape = n.find_shape(scores);
  require(shape == nullptr || shape->size() >= 2, "the scores have {} dimensions where at least two are needed",
          shape ? shape->size() : 0);
  if (reduction_of(n) != 0) return n.set(0, n.dtype(scores), Shape{});
  n.set(0, n.dtype(scores), n.type(labels).shape);
}

void infer_nll_loss(InferNode& n) { infer_loss(n, "input", "target"); }

void infer_cross_entropy(InferNode& n) {
  infer_loss(n, "scores", "labels");
  if (n.output_count() > 1) n.set(1, n.type("scores"));
}

/// PyTorch takes classes in 64 bits only.
Value* classes(const OnnxNode& n, AtenBuilder& aten, const char* name) {
  return n.dtype(name) == DType::Int64 ? n.input(name) : aten("to.dtype", n.input(name), DType::Int64);
}

/// PyTorch has no gradient for them, so that they cannot be parameters.
Value* class_weights(const OnnxNode& n, const char* name) {
  Value* weights = n.find_input(name);
  if (weights != nullptr && weights->constant) weights->trainable = false;
  return weights;
}

Values lower_nll_loss(const OnnxNode& n, AtenBuilder& aten) {
  return aten("nll_loss_nd", n.input("input"), classes(n, aten, "target"), class_weights(n, "weight"), reduction_of(n),
              n.find_i("ignore_index").value_or(-100));
}

Values lower_cross_entropy(const OnnxNode& n, AtenBuilder& aten) {
  Value* scores = n.input("scores");
  Value* labels = classes(n, aten, "labels");
  Value* weights = class_weights(n, "weights");
  const int64_t reduction = reduction_of(n), ignored = n.find_i("ignore_index").value_or(-100);
  if (!n.wants_output(1)) return {aten("cross_entropy_loss", scores, labels, weights, reduction, ignored), nullptr};
  Value* log_prob = aten("log_softmax.int", scores, 1);
  return {aten("nll_loss_nd", log_prob, labels, weights, reduction, ignored), log_prob};
}

/// `F.cross_entropy(scores, labels, weight=weight, ignore_index=0, reduction="sum")`
std::string emit_loss(const Emission& e) {
  const char* function = e.signature().name == "nll_loss_nd" ? "nll_loss" : "cross_entropy";
  std::string text = fmt::format("F.{}({}, {}", function, e.text("self"), e.text("target"));
  if (e.has("weight")) text += ", weight=" + e.text("weight");
  if (e.node().find_attribute("ignore_index") != nullptr) text += ", ignore_index=" + e.text("ignore_index");
  const int64_t reduction = e.find_int("reduction").value_or(1);
  if (reduction == 0 || reduction == 2) text += fmt::format(", reduction=\"{}\"", kReductions[reduction]);
  return text + ")";
}

constexpr OpsetStep kNllHistory[] = {{.to = 13}, {.to = 22, .adds = kBFloat16}};
constexpr OpsetStep kCrossEntropyHistory[] = {{.to = 13, .adds = kBFloat16}};

constexpr OnnxOp kLossOnnx[] = {
    {.sig = "NegativeLogLikelihoodLoss(T input, Tind target, T? weight, *, int? ignore_index, str reduction=\"mean\") "
            "-> T loss",
     .since = 12,
     .history = kNllHistory,
     .infer = infer_nll_loss,
     .open = open_first_axes<0, 1>,
     .eval = eval_nll_loss,
     .lower = lower_nll_loss},
    {.sig = "SoftmaxCrossEntropyLoss(T scores, Tind labels, T? weights, *, int? ignore_index, str reduction=\"mean\") "
            "-> (T output, T? log_prob)",
     .since = 12,
     .history = kCrossEntropyHistory,
     .infer = infer_cross_entropy,
     .open = open_first_axes<0, 1>,
     .eval = eval_softmax_cross_entropy,
     .lower = lower_cross_entropy},
};

constexpr AtenOp kLossAten[] = {
    {.sig = "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
            "ignore_index=-100) -> Tensor",
     .types = types_loss,
     .emit = emit_loss,
     .raise = raise_nll_loss},
    {.sig = "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
            "ignore_index=-100, float label_smoothing=0.) -> Tensor",
     .types = types_cross_entropy,
     .emit = emit_loss,
     .raise = raise_cross_entropy_loss},
};

}  // namespace

extern const OpFamily kLossOps;
constinit const OpFamily kLossOps{"loss", kLossOnnx, kLossAten};

}  // namespace tonnx
