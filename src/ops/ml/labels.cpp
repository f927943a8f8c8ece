// labels.cpp - class labels and transforms of scores, which the models of ai.onnx.ml share.
#include "ops/ml/labels.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/special/rows.h"

namespace tonnx {

Value* fixed(OnnxEdit& edit, TensorPtr tensor, std::string_view hint) {
  Value* value = edit.before("Constant", {}, {{"value", std::move(tensor)}});
  value->name = edit.graph().unique_name(hint);
  return value;
}

Value* fixed_number(OnnxEdit& edit, DType dtype, double value) { return fixed(edit, make_scalar(dtype, value)); }

Value* cast_to(OnnxEdit& edit, Value* x, DType dtype) {
  if (x->type.dtype == dtype) return x;
  return edit.before("Cast", {x}, {{"to", static_cast<int64_t>(dtype)}});
}

Value* rows_of(OnnxEdit& edit, Value* x) {
  require(x != nullptr, "input 'X' is missing");
  require(x->type.rank().value_or(2) >= 1 && x->type.rank().value_or(2) <= 2, "the input has {} dimensions",
          x->type.rank().value_or(0));
  if (x->type.dtype == DType::String) fail_unsupported("PyTorch has no tensors of strings");
  Value* floats = cast_to(edit, x, DType::Float32);
  return x->type.rank() == 1 ? edit.before("Unsqueeze", {floats, edit.ints({0})}) : floats;
}

ClassLabels class_labels(const NodeView& n, std::string_view ints) {
  ClassLabels labels;
  const auto numbers = n.find_ints(ints);
  const auto strings = n.find_strings("classlabels_strings");
  require(!(numbers && !numbers->empty() && strings && !strings->empty()),
          "labels are given both as numbers and as strings");
  if (numbers && !numbers->empty()) {
    labels.numbers = *numbers;
  } else if (strings) {
    labels.numbers.resize(strings->size());
    std::iota(labels.numbers.begin(), labels.numbers.end(), 0);
  }
  require(!labels.numbers.empty(), "there are no class labels");
  return labels;
}

Value* labels_of(OnnxEdit& edit, Value* number, const ClassLabels& labels) {
  std::vector<int64_t> in_order(labels.numbers.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  if (labels.numbers == in_order) return number;
  return edit.before("Gather", {fixed(edit, make_ints(labels.numbers), "labels"), number}, {{"axis", int64_t{0}}});
}

Value* best_class(OnnxEdit& edit, Value* scores) {
  return edit.before("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
}

namespace {

/// A softmax that leaves out the scores that are nought.
Value* softmax_zero(OnnxEdit& edit, Value* scores) {
  const auto number = [&](double value) { return fixed_number(edit, DType::Float32, value); };
  Value* axis = edit.ints({1});
  Value* most = edit.before("ReduceMax", {scores, axis});
  Value* counts = edit.before("Greater", {edit.before("Abs", {scores}), number(1e-7)});
  Value* power = edit.before("Exp", {edit.before("Sub", {scores, most})});
  power = edit.before("Where", {counts, power, number(0)});
  Value* sum = edit.before("ReduceSum", {power, axis});
  sum = edit.before("Where", {edit.before("Equal", {sum, number(0)}), number(1), sum});
  return edit.before("Div", {power, sum});
}

}  // namespace

Value* transformed_scores(OnnxEdit& edit, Value* scores, const std::string& kind) {
  if (kind == "NONE") return scores;
  if (kind == "LOGISTIC") return edit.before("Sigmoid", {scores});
  if (kind == "SOFTMAX") return edit.before("Softmax", {scores}, {{"axis", int64_t{1}}});
  if (kind == "SOFTMAX_ZERO") return softmax_zero(edit, scores);
  require(kind == "PROBIT", "post_transform is '{}'", kind);
  return edit.before("tonnx.Probit", {scores});
}

Value* scores_of_two(OnnxEdit& edit, Value* second, const std::string& kind, bool is_probability) {
  Value* first = nullptr;
  if (kind == "PROBIT") fail_unsupported("post_transform is PROBIT for two classes with one score");
  if (kind == "LOGISTIC") {
    first = edit.before("Sigmoid", {edit.before("Neg", {second})});
    second = edit.before("Sigmoid", {second});
  } else if (is_probability) {
    first = edit.before("Sub", {fixed_number(edit, DType::Float32, 1), second});
  } else {
    first = edit.before("Neg", {second});
  }
  return edit.before("Concat", {first, second}, {{"axis", int64_t{1}}});
}

namespace {

void infer_solve(InferNode& n) {
  const Shape* right = n.find_shape("b");
  n.set(0, n.dtype("b"), right ? std::optional(*right) : std::nullopt);
}
Values lower_solve(const OnnxNode& n, AtenBuilder& aten) { return aten("linalg_solve", n.input("a"), n.input("b")); }
Values lower_probit(const OnnxNode& n, AtenBuilder& aten) { return aten("special_ndtri", n.input("x")); }

constexpr OnnxOp kMlOnnx[] = {
    {.sig = "tonnx::Solve(T a, T b) -> T x", .since = 1, .infer = infer_solve, .lower = lower_solve},
    {.sig = "tonnx::Probit(T x) -> T y", .since = 1, .infer = infer_same_as_first, .lower = lower_probit},
};
constexpr AtenOp kMlAten[] = {
    {.sig = "aten::special_ndtri(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.ndtri",
     .raise = raise_ndtri},
};

}  // namespace

extern const OpFamily kMlOps;
constinit const OpFamily kMlOps{"ml", kMlOnnx, kMlAten};

}  // namespace tonnx
