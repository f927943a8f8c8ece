// dropout.cpp - Dropout: nothing in inference, random zeros in training.
#include "base/error.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/same_value.h"
#include "ops/random/rows.h"

namespace tonnx {
namespace {

void infer_dropout(InferNode& n) {
  infer_same_as_first(n);
  n.set(1, DType::Bool, n.type("data").shape);
}

/// Elements that stay, drawn anew in each run.
Value* random_mask(const OnnxNode& n, AtenBuilder& aten, Value* x) {
  Value* random = aten("rand_like", x);
  if (const auto ratio = n.find_scalar("ratio"); ratio || !n.has("ratio"))
    return aten("ge.Scalar", random, ratio.value_or(0.5));
  return aten("ge.Tensor", random, n.input("ratio"));
}

/// x / (1 - ratio), so that the mean stays.
Value* rescaled(const OnnxNode& n, AtenBuilder& aten, Value* x) {
  if (const auto ratio = n.find_scalar("ratio"); ratio || !n.has("ratio"))
    return aten("div.Scalar", x, 1.0 - ratio.value_or(0.5));
  Value* kept = aten("rsub.Scalar", n.input("ratio"), 1.0);
  return aten("div.Tensor", x, cast(aten, kept, n.dtype("ratio"), n.dtype("data")));
}

/// The seed is not honoured: no other generator gives the numbers of this one. It is asked for so that it is no
/// obstacle.
Values lower_dropout(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("data");
  n.find_i("seed");
  const auto ratio = n.has("ratio") ? n.find_scalar("ratio") : std::optional(0.5);
  require(!ratio || (*ratio >= 0.0 && *ratio < 1.0), "the ratio {} is not in [0, 1)", ratio.value_or(0.0));
  const bool wants_mask = n.wants_output(1);
  const auto training = n.has("training_mode") ? n.find_const_ints("training_mode") : std::vector<int64_t>{0};
  if (training) {
    require(training->size() == 1, "training_mode has {} elements where one is needed", training->size());
    const bool drops = (*training)[0] != 0;
    if (ratio && ratio != 0.0 && !wants_mask) return aten("dropout", x, *ratio, drops);
    if (!drops || ratio == 0.0) return {x, wants_mask ? aten("ones_like", x, Kw{"dtype", DType::Bool}) : nullptr};
    Value* mask = random_mask(n, aten, x);
    return {rescaled(n, aten, aten("mul.Tensor", x, mask)), mask};
  }
  Value* trains = n.input("training_mode");
  Value* mask = aten("bitwise_or.Tensor", random_mask(n, aten, x), aten("bitwise_not", trains));
  return {aten("where.self", trains, rescaled(n, aten, aten("mul.Tensor", x, mask)), x), mask};
}

/// A module drops in training only; a node that drops in any mode is a function.
std::optional<ModuleSpec> module_dropout(const Emission& e) {
  if (e.flag("train")) return std::nullopt;
  return ModuleSpec{
      .type = "nn.Dropout", .arguments = e.text("p"), .weights = {}, .inputs = {"input"}, .short_name = "dropout"};
}

std::string emit_dropout(const Emission& e) { return fmt::format("F.dropout({}, {})", e.text("input"), e.text("p")); }

/// Up to opset 6 a node said itself whether it is in use for training. Files were mostly written with that at its
/// default, training, and run for inference all the same: the mode of the module decides.
void up_dropout_7(OnnxEdit& edit) { drop_attribute(edit, "is_test"); }
void down_dropout_7(OnnxEdit& edit) { edit.node().set_attribute("is_test", int64_t{1}, AttrType::Int); }

/// The mask was of the type of the data.
void cast_mask(OnnxEdit& edit, DType to) {
  if (edit.node().output(1) == nullptr) return;
  if (to == DType::Undefined) edit.cannot("the element type of its input is not known");
  edit.after(1, "Cast", {nullptr}, {{"to", static_cast<int64_t>(to), AttrType::Int, {}, {}}});
}

void up_dropout_10(OnnxEdit& edit) {
  const Value* data = edit.node().input(0);
  cast_mask(edit, data ? data->type.dtype : DType::Undefined);
}
void down_dropout_10(OnnxEdit& edit) { cast_mask(edit, DType::Bool); }

void up_dropout_12(OnnxEdit& edit) {
  const Attribute* found = edit.node().find_attribute("ratio");
  if (found == nullptr) return;
  const auto* ratio = found->value.get<double>();
  require(ratio != nullptr, "attribute 'ratio' is of the wrong type");
  Value* input = edit.constant(make_scalar(DType::Float32, *ratio), "ratio");
  edit.node().take_attribute("ratio");
  edit.node().set_input(1, input);
}

void down_dropout_12(OnnxEdit& edit) {
  if (const Value* training = edit.node().input(2)) {
    const auto mode = training->constant ? ints_of(*training->constant) : std::nullopt;
    if (!mode || mode->size() != 1 || (*mode)[0] != 0) edit.cannot("opset 11 has no training mode");
  }
  if (edit.node().input(1) != nullptr) {
    const auto ratio = edit.const_floats(1);
    if (!ratio || ratio->size() != 1)
      edit.cannot("input 'ratio' is not constant, and is an attribute in the older opset");
    edit.node().set_attribute("ratio", (*ratio)[0], AttrType::Float);
  }
  drop_attribute(edit, "seed");
  edit.node().resize_inputs(1);
}

constexpr OpsetStep kDropoutHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 7, .up = up_dropout_7, .down = down_dropout_7},
    {.to = 10, .up = up_dropout_10, .down = down_dropout_10},
    {.to = 12, .up = up_dropout_12, .down = down_dropout_12},
    {.to = 13, .adds = kBFloat16},
    {.to = 22, .adds = kFloat8},
};

/// Dropout, but for training
Value* same_of_dropout(const Node& node) {
  const Value* training = node.input(2);
  return training == nullptr || uniform_value(training) == 0.0 ? node.input(0) : nullptr;
}

constexpr OnnxOp kDropoutOnnx[] = {
    {.sig = "Dropout(T data, T1? ratio, T2? training_mode, *, int? seed) -> (T output, T2 mask)",
     .since = 1,
     .traits = kRandom,
     .history = kDropoutHistory,
     .infer = infer_dropout,
     .eval = eval_dropout,
     .same = same_of_dropout,
     .lower = lower_dropout,
     .note = "the seed is not honoured"},
};

constexpr AtenOp kDropoutAten[] = {
    {.sig = "aten::dropout(Tensor input, float p, bool train) -> Tensor",
     .types = types_as_input,
     .elementwise = Elementwise::Kept,
     .view = ViewRule::Dropout,
     .emit = emit_dropout,
     .module = module_dropout,
     .raise = raise_dropout},
    {.sig = "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .out_dtype = true,
     .python = "torch.rand_like",
     .raise = raise_random},
};

}  // namespace

extern const OpFamily kDropoutOps;
constinit const OpFamily kDropoutOps{"dropout", kDropoutOnnx, kDropoutAten};

}  // namespace tonnx
