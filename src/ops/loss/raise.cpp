// raise.cpp - PyTorch's losses between a tensor and its target as ONNX.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/frame/aten_types.h"
#include "ops/frame/emission.h"
#include "ops/linalg/rows.h"
#include "ops/loss/rows.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

/// The two tensors of a loss, in the type of the result, and what is made of them.
class Loss {
 public:
  Loss(const AtenNode& n, OnnxBuilder& onnx) : n_(n), onnx_(onnx), dtype_(n.output_dtype()) {}

  Value* input(std::string_view name) { return n_.input_as(name, dtype_); }
  Value* number(double value) { return onnx_.number(dtype_, value); }
  Value* add(Value* a, Value* b) { return onnx_("Add", {a, b}); }
  Value* sub(Value* a, Value* b) { return onnx_("Sub", {a, b}); }
  Value* mul(Value* a, Value* b) { return onnx_("Mul", {a, b}); }
  Value* at_least(Value* a, double bound) { return onnx_("Max", {a, number(bound)}); }
  Value* difference() { return sub(input("self"), input("target")); }
  /// In the type of the two, which for bytes wraps, and only then in that of the result.
  Value* difference(const char* a, const char* b) {
    const DType dtype = n_.promoted({a, b});
    return onnx_("Sub", {n_.input_as(a, dtype), n_.input_as(b, dtype)});
  }
  Value* weighted(Value* loss) { return n_.has("weight") ? mul(loss, input("weight")) : loss; }
  Values reduced(Value* loss) { return reduced_loss(n_, onnx_, loss); }

 private:
  const AtenNode& n_;
  OnnxBuilder& onnx_;
  DType dtype_;
};

Values raise_mse_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  Value* d = loss.difference();
  return loss.reduced(loss.mul(d, d));
}

Values raise_l1_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  return loss.reduced(onnx("Abs", {loss.difference()}));
}

/// A parabola near zero, lines further out.
Values raise_smooth_l1_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  const double beta = n.f("beta");
  Value* d = onnx("Abs", {loss.difference()});
  if (beta == 0) return loss.reduced(d);
  Value* near = loss.mul(loss.mul(d, d), loss.number(0.5 / beta));
  Value* far = loss.sub(d, loss.number(0.5 * beta));
  return loss.reduced(onnx.where(onnx("Less", {d, loss.number(beta)}), near, far));
}

Values raise_huber_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  const double delta = n.f("delta");
  Value* d = onnx("Abs", {loss.difference()});
  Value* near = loss.mul(loss.mul(d, d), loss.number(0.5));
  Value* far = loss.mul(loss.sub(d, loss.number(0.5 * delta)), loss.number(delta));
  return loss.reduced(onnx.where(onnx("LessOrEqual", {d, loss.number(delta)}), near, far));
}

/// PyTorch holds the logarithms above -100.
Values raise_binary_cross_entropy(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  Value *x = loss.input("self"), *target = loss.input("target");
  Value* is = loss.at_least(onnx("Log", {x}), -100);
  Value* is_not = loss.at_least(log1p(onnx("Neg", {x}), onnx), -100);
  Value* sum = loss.sub(loss.mul(loss.sub(target, loss.number(1)), is_not), loss.mul(target, is));
  return loss.reduced(loss.weighted(sum));
}

Values raise_bce_with_logits(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  Value *x = loss.input("self"), *target = loss.input("target");
  Value* log = softplus(onnx("Neg", {x}), onnx);
  if (n.has("pos_weight")) {
    Value* more = loss.mul(loss.sub(loss.input("pos_weight"), loss.number(1)), target);
    log = loss.mul(log, loss.add(more, loss.number(1)));
  }
  Value* sum = loss.add(loss.mul(loss.sub(loss.number(1), target), x), log);
  return loss.reduced(loss.weighted(sum));
}

Values raise_kl_div(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  Value *x = loss.input("self"), *target = loss.input("target");
  if (n.flag("log_target")) return loss.reduced(loss.mul(onnx("Exp", {target}), loss.sub(target, x)));
  Value* entropy = loss.mul(target, onnx("Log", {target}));
  entropy = onnx.where(onnx("Equal", {target, loss.number(0)}), loss.number(0), entropy);
  return loss.reduced(loss.sub(entropy, loss.mul(target, x)));
}

Values raise_poisson_nll_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  Value *x = loss.input("input"), *target = loss.input("target");
  const double eps = n.f("eps");
  Value* sum = n.flag("log_input") ? loss.sub(onnx("Exp", {x}), loss.mul(target, x))
                                   : loss.sub(x, loss.mul(target, onnx("Log", {loss.add(x, loss.number(eps))})));
  if (n.flag("full")) {  // Stirling's formula, for more than 1
    Value* log = onnx("Log", {loss.mul(target, loss.number(2 * std::numbers::pi))});
    Value* more = loss.sub(loss.mul(target, onnx("Log", {target})), target);
    more = loss.add(more, loss.mul(log, loss.number(0.5)));
    sum = loss.add(sum, onnx.where(onnx("LessOrEqual", {target, loss.number(1)}), loss.number(0), more));
  }
  return loss.reduced(sum);
}

Values raise_soft_margin_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  return loss.reduced(softplus(onnx("Neg", {loss.mul(loss.input("self"), loss.input("target"))}), onnx));
}

Values raise_hinge_embedding_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  Value *x = loss.input("self"), *target = loss.input("target");
  Value* apart = loss.at_least(loss.sub(loss.number(n.f("margin")), x), 0);
  Value* one = onnx.where(onnx("Equal", {target, loss.number(1)}), loss.number(0), apart);
  Value* other = onnx.where(onnx("Equal", {target, loss.number(-1)}), loss.number(0), x);
  return loss.reduced(loss.add(one, other));
}

Values raise_margin_ranking_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  const DType dtype = n.promoted({"input1", "input2", "target"});
  Value* sign = onnx.cast(onnx("Neg", {n.input("target")}), dtype);
  Value* d = onnx("Mul", {sign, onnx.cast(loss.difference("input1", "input2"), dtype)});
  d = onnx.cast(d, n.output_dtype());
  const double margin = n.f("margin");
  return loss.reduced(loss.at_least(margin == 0 ? d : loss.add(d, loss.number(margin)), 0));
}

Values raise_cosine_embedding_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  Value *a = loss.input("input1"), *b = loss.input("input2"), *target = loss.input("target");
  const int64_t dim = n.rank("target") == 1 ? 1 : 0;
  const auto total = [&](Value* x) { return onnx.reduce("ReduceSum", x, {dim}, false); };
  const auto length = [&](Value* x) { return loss.add(total(loss.mul(x, x)), loss.number(1e-12)); };
  Value* cosine = onnx("Div", {total(loss.mul(a, b)), onnx("Sqrt", {loss.mul(length(a), length(b))})});
  Value* together = loss.sub(loss.number(1), cosine);
  Value* apart = loss.at_least(loss.sub(cosine, loss.number(n.f("margin"))), 0);
  Value* one = onnx.where(onnx("Equal", {target, loss.number(1)}), together, loss.number(0));
  Value* other = onnx.where(onnx("Equal", {target, loss.number(-1)}), apart, loss.number(0));
  return loss.reduced(loss.add(one, other));
}

Values raise_triplet_margin_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  const double p = n.f("p"), eps = n.f("eps");
  const auto distance = [&](const char* a, const char* b) {
    return length_of(onnx.cast(loss.difference(a, b), n.output_dtype()), p, eps, false, onnx);
  };
  Value *near = distance("anchor", "positive"), *far = distance("anchor", "negative");
  if (n.flag("swap")) far = onnx("Min", {far, distance("positive", "negative")});
  Value* d = loss.sub(loss.add(near, loss.number(n.f("margin"))), far);
  return loss.reduced(loss.at_least(d, 0));
}

/// The sum over all classes but the right one, by their count.
Values raise_multi_margin_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  const double p = n.f("p");
  const int64_t rank = std::max<int64_t>(n.rank("self"), 1), classes = rank - 1;
  Value *x = loss.input("self"), *target = n.input("target");
  if (n.rank("self") == 0) x = onnx.unsqueeze(x, {0});
  if (n.rank("target") == rank) target = onnx.squeeze(target, {0});
  Value* place = onnx.unsqueeze(target, {classes});
  Value* right = onnx("GatherElements", {x, place}, {{"axis", classes}});
  Value* d = loss.at_least(loss.add(loss.sub(loss.number(n.f("margin")), right), x), 0);
  if (p == 2) d = loss.mul(d, d);
  if (p != 1 && p != 2) n.cannot("a power of {}", p);
  if (n.has("weight")) d = loss.mul(d, onnx.gather(loss.input("weight"), place, 0));
  Value* index = onnx.range(onnx.size(x, classes));
  d = onnx.where(onnx("Equal", {index, place}), loss.number(0), d);
  return loss.reduced(onnx.reduce("ReduceMean", d, {classes}, false));
}

/// The classes of each row end at the first negative one.
Values raise_multilabel_margin_loss(const AtenNode& n, OnnxBuilder& onnx) {
  Loss loss(n, onnx);
  const int64_t rank = std::max<int64_t>(n.rank("self"), 1), last = rank - 1;
  Value *x = loss.input("self"), *target = n.input_as("target", DType::Int64);
  if (n.rank("self") == 0) x = onnx.unsqueeze(x, {0});
  if (n.rank("target") == 0) target = onnx.unsqueeze(target, {0});
  Value* zero = onnx.integer(DType::Int64, 0);
  Value* ends = onnx.cast(onnx("Less", {target, zero}), DType::Int64);
  Value* is_valid = onnx("Equal", {onnx("CumSum", {ends, onnx.integer(DType::Int64, last)}), zero});
  Value* index = onnx.range(onnx.size(x, last));
  // which class (last) is named at which place (before it)
  Value* names = onnx("Equal", {onnx.unsqueeze(target, {rank}), index});
  names = onnx("And", {names, onnx.unsqueeze(is_valid, {rank})});
  Value* is_target = onnx.cast(onnx.reduce("ReduceMax", onnx.cast(names, DType::Int32), {last}, true), DType::Bool);
  Value* right = onnx("GatherElements", {x, onnx("Max", {target, zero})}, {{"axis", last}});
  Value* gap = loss.sub(loss.number(1), loss.sub(onnx.unsqueeze(right, {rank}), onnx.unsqueeze(x, {last})));
  Value* counts = onnx("And", {onnx.unsqueeze(is_valid, {rank}), onnx("Not", {is_target})});
  Value* d = onnx.where(counts, loss.at_least(gap, 0), loss.number(0));
  Value* sum = onnx.reduce("ReduceSum", d, {last, rank}, false);
  Value* count = onnx.cast(onnx.scalar(onnx.size(x, last)), n.output_dtype());
  return loss.reduced(onnx("Div", {sum, count}));
}

constexpr AtenOp kAtenLossAten[] = {
    {.sig = "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
     .types = types_loss_of_pairs,
     .emit = emit_reduced,
     .raise = raise_binary_cross_entropy},
    {.sig = "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
            "pos_weight=None, int reduction=1) -> Tensor",
     .types = types_bce_with_logits,
     .emit = emit_reduced,
     .raise = raise_bce_with_logits},
    {.sig = "aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
            "reduction=1) -> Tensor",
     .types = types_cosine_embedding_loss,
     .emit = emit_reduced,
     .raise = raise_cosine_embedding_loss},
    {.sig = "aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
            "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     .python = "torch.ctc_loss",
     .note = "its sum over all alignments is no operator of ONNX"},
    {.sig = "aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int "
            "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     .python = "torch.ctc_loss",
     .note = "its sum over all alignments is no operator of ONNX"},
    {.sig = "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
     .types = types_loss_of_pairs,
     .emit = emit_reduced,
     .raise = raise_hinge_embedding_loss},
    {.sig = "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
     .types = types_loss_of_pairs,
     .emit = emit_reduced,
     .raise = raise_huber_loss},
    {.sig = "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
     .types = types_loss_of_differences,
     .emit = emit_reduced,
     .raise = raise_kl_div},
    {.sig = "aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .types = types_loss_of_differences,
     .emit = emit_reduced,
     .raise = raise_l1_loss},
    {.sig = "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) "
            "-> Tensor",
     .types = types_loss_of_inputs,
     .emit = emit_reduced,
     .raise = raise_margin_ranking_loss},
    {.sig = "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .types = types_loss_of_differences,
     .emit = emit_reduced,
     .raise = raise_mse_loss},
    {.sig = "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
            "reduction=1) -> Tensor",
     .types = types_loss,
     .emit = emit_reduced,
     .raise = raise_multi_margin_loss},
    {.sig = "aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .types = types_loss_of_rows,
     .emit = emit_reduced,
     .raise = raise_multilabel_margin_loss},
    {.sig = "aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) "
            "-> Tensor",
     .types = types_loss_of_inputs,
     .emit = emit_reduced,
     .raise = raise_poisson_nll_loss},
    {.sig = "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
     .types = types_loss_of_differences,
     .emit = emit_reduced,
     .raise = raise_smooth_l1_loss},
    {.sig = "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .types = types_loss_of_pairs,
     .emit = emit_reduced,
     .raise = raise_soft_margin_loss},
    {.sig = "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., "
            "float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
     .types = types_triplet_margin_loss,
     .emit = emit_reduced,
     .raise = raise_triplet_margin_loss},
};

}  // namespace

std::string emit_reduced(const Emission& e) {
  constexpr std::string_view kReductions[] = {"none", "mean", "sum"};
  std::vector<std::string> arguments;
  for (const Param& param : e.signature().inputs) {
    if (param.type == "Tensor" && !param.optional) {
      arguments.push_back(e.text(param.name));
    } else if (param.name == "reduction") {
      const int64_t reduction = e.find_int("reduction").value_or(1);
      if (reduction == 0 || reduction == 2)
        arguments.push_back(fmt::format("reduction=\"{}\"", kReductions[reduction]));
    } else if (e.node().find_attribute(param.name) != nullptr) {
      arguments.push_back(param.name + "=" + e.text(param.name));
    }
  }
  return fmt::format("F.{}({})", e.signature().name, joined(arguments));
}

Values reduced_loss(const AtenNode& n, OnnxBuilder& onnx, Value* loss) {
  const int64_t reduction = n.i("reduction");
  if (reduction == 0 || (onnx.rank(loss) == 0 && reduction <= 2)) return loss;
  if (reduction != 1 && reduction != 2) n.cannot("reduction {}", reduction);
  const Shape& shape = onnx.shape(loss);
  for (const Dim& dim : shape) {
    if (dim.is(0)) return onnx.number(n.output_dtype(), reduction == 1 ? std::nan("") : 0);
  }
  return onnx.reduce(reduction == 1 ? "ReduceMean" : "ReduceSum", loss, {}, false);
}

extern const OpFamily kAtenLossOps;
constinit const OpFamily kAtenLossOps{"aten_loss", {}, kAtenLossAten};

}  // namespace tonnx
