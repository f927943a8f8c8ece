// training.cpp - one step of an optimiser, as ai.onnx.preview.training has it: Adagrad, Adam, Momentum.
#include "base/error.h"
#include "ops/frame/expansion.h"

namespace tonnx {
namespace {

/// The tensors of an optimiser, which come in groups of equal length: all weights, then all gradients, and so on.
struct Step {
  Step(const NodeView& n, OnnxEdit& edit, size_t groups) : make(edit), node(&n.node()) {
    const size_t count = node->inputs().size() - std::min<size_t>(2, node->inputs().size());
    require(count > 0 && count % groups == 0, "{} tensors do not divide into {} groups", count, groups);
    weights = count / groups;
  }

  Value* tensor(size_t group, size_t weight) const { return node->input(2 + group * weights + weight); }
  DType dtype(size_t weight) const {
    const Value* x = tensor(0, weight);
    require(x != nullptr, "a weight is missing");
    if (x->type.dtype == DType::Undefined) fail_unsupported("the element type of a weight is not known");
    return x->type.dtype;
  }
  /// The learning rate, and the number of the step, in the type of a weight.
  Value* rate(size_t weight) { return make.cast(node->input(0), dtype(weight)); }
  Value* time(size_t weight) { return make.cast(node->input(1), dtype(weight)); }
  Value* is_later() { return make("Greater", {node->input(1), make.number(DType::Int64, 0)}); }

  /// x * by, and nothing where that changes nothing.
  Value* scaled(Value* x, double by, DType dtype) { return by == 1.0 ? x : make("Mul", {x, make.number(dtype, by)}); }
  /// The gradient of the weight and of its squared norm.
  Value* gradient(size_t weight, double norm_coefficient) {
    Value* g = tensor(1, weight);
    if (norm_coefficient == 0.0) return g;
    return make("Add", {scaled(tensor(0, weight), norm_coefficient, dtype(weight)), g});
  }

  Expansion make;
  const Node* node;
  size_t weights;
};

bool replace(OnnxEdit& edit, const std::vector<std::vector<Value*>>& groups) {
  std::vector<Value*> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  require(edit.node().outputs().size() <= all.size(), "an optimiser of {} outputs gives {}",
          edit.node().outputs().size(), all.size());
  return edit.replace_with(all);
}

bool expand_adagrad(const NodeView& n, OnnxEdit& edit) {
  Step step(n, edit, 3);
  Expansion& make = step.make;
  std::vector<std::vector<Value*>> results(2);
  for (size_t i = 0; i < step.weights; ++i) {
    const DType dtype = step.dtype(i);
    Value* x = step.tensor(0, i);
    Value* rate = step.rate(i);
    if (n.f("decay_factor") != 0.0) {
      Value* slower = step.scaled(step.time(i), n.f("decay_factor"), dtype);
      rate = make("Div", {rate, make("Add", {slower, make.number(dtype, 1.0)})});
    }
    Value* g = step.gradient(i, n.f("norm_coefficient"));
    Value* h = make("Add", {step.tensor(2, i), make("Mul", {g, g})});
    Value* root = make("Add", {make("Sqrt", {h}), make.number(dtype, n.f("epsilon"))});
    results[0].push_back(make("Sub", {x, make("Div", {make("Mul", {rate, g}), root})}));
    results[1].push_back(h);
  }
  return replace(edit, results);
}

/// Both averages start at zero, which the rate makes up for from the second step on.
Value* corrected_rate(Step& step, size_t weight, double alpha, double beta) {
  Expansion& make = step.make;
  const DType dtype = step.dtype(weight);
  const auto missing = [&](double factor) {
    return make("Sub", {make.number(dtype, 1.0), make("Pow", {make.number(dtype, factor), step.time(weight)})});
  };
  Value* rate = step.rate(weight);
  Value* corrected = make("Div", {make("Mul", {rate, make("Sqrt", {missing(beta)})}), missing(alpha)});
  return make("Where", {step.is_later(), corrected, rate});
}

bool expand_adam(const NodeView& n, OnnxEdit& edit) {
  Step step(n, edit, 4);
  Expansion& make = step.make;
  const double alpha = n.f("alpha"), beta = n.f("beta");
  std::vector<std::vector<Value*>> results(3);
  for (size_t i = 0; i < step.weights; ++i) {
    const DType dtype = step.dtype(i);
    Value* g = step.gradient(i, n.f("norm_coefficient"));
    Value* v = make("Add", {step.scaled(step.tensor(2, i), alpha, dtype), step.scaled(g, 1.0 - alpha, dtype)});
    Value* squared = step.scaled(make("Mul", {g, g}), 1.0 - beta, dtype);
    Value* h = make("Add", {step.scaled(step.tensor(3, i), beta, dtype), squared});
    Value* root = make("Add", {make("Sqrt", {h}), make.number(dtype, n.f("epsilon"))});
    Value* change = make("Mul", {corrected_rate(step, i, alpha, beta), make("Div", {v, root})});
    Value* x = make("Sub", {step.tensor(0, i), change});
    results[0].push_back(step.scaled(x, 1.0 - n.f("norm_coefficient_post"), dtype));
    results[1].push_back(v);
    results[2].push_back(h);
  }
  return replace(edit, results);
}

bool expand_momentum(const NodeView& n, OnnxEdit& edit) {
  Step step(n, edit, 3);
  Expansion& make = step.make;
  const std::string mode = n.s("mode");
  require(mode == "standard" || mode == "nesterov", "the mode is '{}'", mode);
  std::vector<std::vector<Value*>> results(2);
  for (size_t i = 0; i < step.weights; ++i) {
    const DType dtype = step.dtype(i);
    Value* g = step.gradient(i, n.f("norm_coefficient"));
    Value* added = g;
    if (n.f("beta") != 1.0) {  // the first gradient counts in full
      Value* beta = make("Where", {step.is_later(), make.number(dtype, n.f("beta")), make.number(dtype, 1.0)});
      added = make("Mul", {g, beta});
    }
    Value* v = make("Add", {step.scaled(step.tensor(2, i), n.f("alpha"), dtype), added});
    Value* change = mode == "nesterov" ? make("Add", {g, step.scaled(v, n.f("alpha"), dtype)}) : v;
    results[0].push_back(make("Sub", {step.tensor(0, i), make("Mul", {step.rate(i), change})}));
    results[1].push_back(v);
  }
  return replace(edit, results);
}

constexpr OnnxOp kTrainingOnnx[] = {
    {.sig = "ai.onnx.preview.training::Adagrad(T1 R, T2 T, T3... inputs, *, float decay_factor=0.0, "
            "float epsilon=1e-06, float norm_coefficient=0.0) -> T3... outputs",
     .since = 1,
     .expand = expand_adagrad},
    {.sig = "ai.onnx.preview.training::Adam(T1 R, T2 T, T3... inputs, *, float alpha=0.9, float beta=0.999, "
            "float epsilon=1e-06, float norm_coefficient=0.0, float norm_coefficient_post=0.0) -> T3... outputs",
     .since = 1,
     .expand = expand_adam},
    {.sig = "ai.onnx.preview.training::Momentum(T1 R, T2 T, T3... inputs, *, float alpha, float beta, str mode, "
            "float norm_coefficient) -> T3... outputs",
     .since = 1,
     .expand = expand_momentum},
    {.sig = "ai.onnx.preview.training::Gradient(T1... Inputs, *, strs xs, str y, strs? zs) -> T2... Outputs",
     .since = 1,
     .note =
         "names values of the graph around it and asks for a derivative, which autograd takes of the module itself"},
};

}  // namespace

extern const OpFamily kTrainingOps;
constinit const OpFamily kTrainingOps{"training", kTrainingOnnx, {}};

}  // namespace tonnx
