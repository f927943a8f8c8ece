// nll_raise.cpp - PyTorch's negative log likelihood and cross entropy as ONNX.
#include <algorithm>

#include "ops/frame/aten_types.h"
#include "ops/loss/rows.h"

namespace tonnx {
namespace {

/// The logarithms of probabilities of classes, and the number of the right class.
struct Likelihood {
  Value* log;
  Value* target;
  Value* weight;  // null: all the same
  IntArg ignore_index = -100;
  int64_t classes;  // the dimension of the classes
};

struct Terms {
  Value* loss;      // 0 where the target is ignored
  Value* weight;    // of each target, 0 where it is ignored
  Value* is_valid;  // whether it is not
};

Terms terms_of(OnnxBuilder& onnx, const Likelihood& of) {
  const DType dtype = OnnxBuilder::dtype(of.log);
  Value* is_ignored = onnx("Equal", {of.target, onnx.scalar(of.ignore_index)});
  Value* target = onnx.where(is_ignored, onnx.integer(DType::Int64, 0), of.target);
  Value* place = onnx.unsqueeze(target, {of.classes});
  Value* log = onnx.squeeze(onnx("GatherElements", {of.log, place}, {{"axis", of.classes}}), {of.classes});
  Value* is_valid = onnx("Not", {is_ignored});
  Value* weight = onnx.cast(is_valid, dtype);
  if (of.weight) weight = onnx.where(is_ignored, onnx.number(dtype, 0), onnx.gather(of.weight, target, 0));
  Value* loss = onnx("Neg", {of.weight ? onnx("Mul", {log, weight}) : log});
  return {onnx.where(is_ignored, onnx.number(dtype, 0), loss), weight, is_valid};
}

Value* sum_of(OnnxBuilder& onnx, Value* x) { return onnx.rank(x) == 0 ? x : onnx.reduce("ReduceSum", x, {}, false); }

/// The mean is weighted, too.
Value* reduced_nll(const AtenNode& n, OnnxBuilder& onnx, const Terms& terms) {
  const int64_t reduction = n.i("reduction");
  if (reduction == 0) return terms.loss;
  Value* sum = sum_of(onnx, terms.loss);
  return reduction == 2 ? sum : onnx("Div", {sum, sum_of(onnx, terms.weight)});
}

Likelihood likelihood_of(const AtenNode& n, Value* log) {
  return {.log = log,
          .target = n.input_as("target", DType::Int64),
          .weight = n.has("weight") ? n.input_as("weight", n.output_dtype()) : nullptr,
          .ignore_index = n.int_arg("ignore_index"),
          .classes = n.rank("self") == 1 ? 0 : 1};
}

Values raise_nll_forward(const AtenNode& n, OnnxBuilder& onnx) {
  const Terms terms = terms_of(onnx, likelihood_of(n, n.input("self")));
  Value* total = n.i("reduction") == 0 ? onnx.number(n.output_dtype(), 0) : sum_of(onnx, terms.weight);
  return {reduced_nll(n, onnx, terms), total};
}

/// -sum over the classes of target * weight * log.
Value* cross_entropy_of_probabilities(const AtenNode& n, OnnxBuilder& onnx, Value* log, int64_t classes) {
  const DType dtype = n.output_dtype();
  Value* target = n.input_as("target", dtype);
  const double smoothing = n.f("label_smoothing");
  const IntArg count = onnx.size(log, classes);
  if (smoothing != 0) {
    Value* share = onnx("Div", {onnx.number(dtype, smoothing), onnx.cast(onnx.scalar(count), dtype)});
    target = onnx("Add", {onnx("Mul", {target, onnx.number(dtype, 1 - smoothing)}), share});
  }
  Value* product = onnx("Mul", {log, target});
  if (n.has("weight")) {
    Value* weight = n.input_as("weight", dtype);
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < onnx.rank(log) - classes; ++axis) axes.push_back(axis);
    product = onnx("Mul", {product, onnx.unsqueeze(weight, axes)});
  }
  const int64_t reduction = n.i("reduction");
  if (reduction == 0) return onnx("Neg", {onnx.reduce("ReduceSum", product, {classes}, false)});
  Value* sum = onnx("Neg", {sum_of(onnx, product)});
  if (reduction == 2) return sum;
  IntArg rows = 1;
  for (int64_t axis = 0; axis < onnx.rank(log); ++axis) {
    if (axis != classes) rows = onnx.mul(rows, onnx.size(log, axis));
  }
  return rows.is(1) ? sum : onnx("Div", {sum, onnx.cast(onnx.scalar(rows), dtype)});
}

/// The loss as if each class were the right one a little.
Value* smoothed(const AtenNode& n, OnnxBuilder& onnx, const Likelihood& of, const Terms& terms) {
  const DType dtype = n.output_dtype();
  Value* log = of.log;
  if (of.weight) {
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < onnx.rank(log) - of.classes; ++axis) axes.push_back(axis);
    log = onnx("Mul", {log, onnx.unsqueeze(of.weight, axes)});
  }
  Value* all = onnx("Neg", {onnx.reduce("ReduceSum", log, {of.classes}, false)});
  all = onnx.where(terms.is_valid, all, onnx.number(dtype, 0));
  const double smoothing = n.f("label_smoothing");
  Value* share =
      onnx("Div", {onnx.number(dtype, smoothing), onnx.cast(onnx.scalar(onnx.size(of.log, of.classes)), dtype)});
  Value* loss = reduced_nll(n, onnx, terms);
  Value* even = reduced_nll(n, onnx, {all, terms.weight, terms.is_valid});
  return onnx("Add", {onnx("Mul", {loss, onnx.number(dtype, 1 - smoothing)}), onnx("Mul", {even, share})});
}

constexpr AtenOp kAtenNllAten[] = {
    {.sig = "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
            "ignore_index=-100) -> Tensor",
     .types = types_loss,
     .emit = emit_reduced,
     .raise = raise_nll_loss},
    {.sig = "aten::nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
            "ignore_index=-100) -> Tensor",
     .types = types_loss,
     .python = "torch.ops.aten.nll_loss2d",
     .raise = raise_nll_loss},
    {.sig = "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> "
            "(Tensor output, Tensor total_weight)",
     .python = "torch.ops.aten.nll_loss_forward",
     .raise = raise_nll_forward},
    {.sig = "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "
            "-> (Tensor output, Tensor total_weight)",
     .python = "torch.ops.aten.nll_loss2d_forward",
     .raise = raise_nll_forward},
};

}  // namespace

Values raise_nll_loss(const AtenNode& n, OnnxBuilder& onnx) {
  return reduced_nll(n, onnx, terms_of(onnx, likelihood_of(n, n.input("self"))));
}

Values raise_cross_entropy_loss(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t classes = n.rank("self") == 1 ? 0 : 1;
  Value* log = onnx("LogSoftmax", {n.input_as("self", n.output_dtype())}, {{"axis", classes}});
  if (n.rank("target") == n.rank("self") && is_float(n.dtype("target"))) {
    n.ignore({"ignore_index"});
    return cross_entropy_of_probabilities(n, onnx, log, classes);
  }
  const Likelihood of = likelihood_of(n, log);
  const Terms terms = terms_of(onnx, of);
  return n.f("label_smoothing") == 0 ? reduced_nll(n, onnx, terms) : smoothed(n, onnx, of, terms);
}

extern const OpFamily kAtenNllOps;
constinit const OpFamily kAtenNllOps{"aten_nll", {}, kAtenNllAten};

}  // namespace tonnx
