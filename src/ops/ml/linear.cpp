// linear.cpp - linear models and support vector machines: LinearRegressor, LinearClassifier, SVMRegressor,
// SVMClassifier.
#include <array>
#include <cmath>

#include "base/budget.h"
#include "base/error.h"
#include "ops/ml/labels.h"

namespace tonnx {
namespace {

/// x @ coefficients.T + intercepts, with one row of coefficients for each target.
Value* linear(OnnxEdit& edit, Value* x, const std::vector<double>& coefficients, int64_t targets,
              const std::optional<std::vector<double>>& intercepts) {
  const auto count = static_cast<int64_t>(coefficients.size());
  require(targets >= 1 && count > 0 && count % targets == 0, "{} coefficients are for {} targets", count, targets);
  require(!intercepts || intercepts->empty() || static_cast<int64_t>(intercepts->size()) == targets,
          "there are {} intercepts for {} targets", intercepts ? intercepts->size() : 0, targets);
  Value* weight = edit.constant(make_floats(DType::Float32, {targets, count / targets}, coefficients), "weight");
  std::vector<Value*> inputs{x, weight};
  if (intercepts && !intercepts->empty()) {
    inputs.push_back(edit.constant(make_floats(DType::Float32, {targets}, *intercepts), "bias"));
  }
  return edit.before("Gemm", inputs, {{"transB", int64_t{1}}});
}

bool expand_linear_regressor(const NodeView& n, OnnxEdit& edit) {
  const auto coefficients = n.find_floats("coefficients");
  require(coefficients.has_value(), "there are no coefficients");
  Value* y =
      linear(edit, rows_of(edit, edit.node().input(0)), *coefficients, n.i("targets"), n.find_floats("intercepts"));
  return edit.replace_with({transformed_scores(edit, y, n.s("post_transform"))});
}

Value* is_above(OnnxEdit& edit, Value* score, double limit) {
  Value* above = edit.before("Greater", {score, fixed_number(edit, DType::Float32, limit)});
  return cast_to(edit, edit.before("Squeeze", {above, edit.ints({1})}), DType::Int64);
}

bool expand_linear_classifier(const NodeView& n, OnnxEdit& edit) {
  const ClassLabels labels = class_labels(n, "classlabels_ints");
  const auto coefficients = n.find_floats("coefficients"), intercepts = n.find_floats("intercepts");
  require(coefficients.has_value(), "there are no coefficients");
  n.flag("multi_class");  // says how the model was trained
  const int64_t rows = intercepts && !intercepts->empty() ? static_cast<int64_t>(intercepts->size()) : labels.count();
  const std::string post = n.s("post_transform");
  Value* scores = linear(edit, rows_of(edit, edit.node().input(0)), *coefficients, rows, intercepts);
  if (rows == 1 && labels.count() == 2) {
    Value* label = labels_of(edit, is_above(edit, scores, 0), labels);
    return edit.replace_with({label, scores_of_two(edit, scores, post, true)});
  }
  require(rows == labels.count(), "there are {} scores for {} classes", rows, labels.count());
  return edit.replace_with({labels_of(edit, best_class(edit, scores), labels), transformed_scores(edit, scores, post)});
}

// Support vectors

/// How like each row is to each of the vectors, [rows, vectors].
Value* kernel(const NodeView& n, OnnxEdit& edit, Value* x, const std::vector<double>& vectors, int64_t count) {
  const std::string type = n.s("kernel_type");
  const auto params = n.find_floats("kernel_params").value_or(std::vector<double>{});
  const double gamma = params.size() > 0 ? params[0] : 0, coef0 = params.size() > 1 ? params[1] : 0,
               degree = params.size() > 2 ? params[2] : 0;
  const auto number = [&](double value) { return fixed_number(edit, DType::Float32, value); };
  Value* products = linear(edit, x, vectors, count, std::nullopt);
  if (type == "LINEAR") return products;
  if (type == "POLY" || type == "SIGMOID") {
    Value* inner = edit.before("Add", {edit.before("Mul", {products, number(gamma)}), number(coef0)});
    return type == "POLY" ? edit.before("Pow", {inner, number(degree)}) : edit.before("Tanh", {inner});
  }
  require(type == "RBF", "kernel_type is '{}'", type);
  const auto size = static_cast<int64_t>(vectors.size()) / count;
  std::vector<double> squares(static_cast<size_t>(count), 0.0);
  for (size_t i = 0; i < vectors.size(); ++i) squares[i / static_cast<size_t>(size)] += vectors[i] * vectors[i];
  Value* own = edit.before("ReduceSumSquare", {x, edit.ints({1})});
  Value* sums = edit.before("Add", {own, fixed(edit, make_floats(DType::Float32, {count}, squares))});
  Value* distance = edit.before("Sub", {sums, edit.before("Mul", {products, number(2)})});
  return edit.before("Exp", {edit.before("Mul", {distance, number(-gamma)})});
}

bool expand_svm_regressor(const NodeView& n, OnnxEdit& edit) {
  const auto coefficients = n.find_floats("coefficients"), rho = n.find_floats("rho"),
             vectors = n.find_floats("support_vectors");
  const int64_t count = n.i("n_supports");
  require(coefficients && !coefficients->empty() && rho && !rho->empty(), "there are no coefficients, or no rho");
  Value* x = rows_of(edit, edit.node().input(0));
  Value* y = nullptr;
  const std::vector<double> offset{(*rho)[0]};
  if (count > 0) {
    require(vectors && !vectors->empty() && static_cast<int64_t>(vectors->size()) % count == 0,
            "there are no {} support vectors", count);
    y = linear(edit, kernel(n, edit, x, *vectors, count), *coefficients, 1, offset);
  } else {
    require(n.s("kernel_type") == "LINEAR", "without support vectors the kernel is linear");
    n.find_floats("kernel_params");
    y = linear(edit, x, *coefficients, 1, offset);
  }
  if (n.flag("one_class")) {
    const auto number = [&](double value) { return fixed_number(edit, DType::Float32, value); };
    y = edit.before("Where", {edit.before("Greater", {y, number(0)}), number(1), number(-1)});
  }
  return edit.replace_with({transformed_scores(edit, y, n.s("post_transform"))});
}

/// The machines of each pair of classes, as rows over all vectors: those of class i and of class j have coefficients,
/// the others none.
std::vector<double> pair_coefficients(const std::vector<double>& given, const std::vector<int64_t>& per_class,
                                      int64_t total) {
  const auto classes = static_cast<int64_t>(per_class.size());
  require(static_cast<int64_t>(given.size()) == (classes - 1) * total,
          "there are {} coefficients for {} vectors of {} classes", given.size(), total, classes);
  std::vector<int64_t> starts{0};
  for (const int64_t count : per_class) starts.push_back(starts.back() + count);
  std::vector<double> result;
  result.reserve(room_for<double>({classes * (classes - 1) / 2, total}));
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) {
      std::vector<double> row(static_cast<size_t>(total), 0.0);
      for (int64_t v = starts[static_cast<size_t>(i)]; v < starts[static_cast<size_t>(i) + 1]; ++v) {
        row[static_cast<size_t>(v)] = given[static_cast<size_t>((j - 1) * total + v)];
      }
      for (int64_t v = starts[static_cast<size_t>(j)]; v < starts[static_cast<size_t>(j) + 1]; ++v) {
        row[static_cast<size_t>(v)] = given[static_cast<size_t>(i * total + v)];
      }
      result.insert(result.end(), row.begin(), row.end());
    }
  }
  return result;
}

/// The class with the most votes of the pairs, the first of them where several have as many.
Value* most_votes(OnnxEdit& edit, Value* scores, int64_t classes) {
  std::vector<double> for_first, for_second;  // [classes, pairs]
  const int64_t pairs = classes * (classes - 1) / 2;
  for_first.assign(room_for<std::array<double, 2>>({classes, pairs}), 0.0);
  for_second = for_first;
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      for_first[static_cast<size_t>(i * pairs + pair)] = 1;
      for_second[static_cast<size_t>(j * pairs + pair)] = 1;
    }
  }
  Value* first = cast_to(edit, edit.before("Greater", {scores, fixed_number(edit, DType::Float32, 0)}), DType::Float32);
  Value* second = edit.before("Sub", {fixed_number(edit, DType::Float32, 1), first});
  const auto votes = [&](Value* won, const std::vector<double>& table) {
    Value* matrix = fixed(edit, make_floats(DType::Float32, {classes, pairs}, table));
    return edit.before("Gemm", {won, matrix}, {{"transB", int64_t{1}}});
  };
  return best_class(edit, edit.before("Add", {votes(first, for_first), votes(second, for_second)}));
}

/// How likely each class is, where each pair of them says how likely it finds its first: the probabilities that come
/// closest to all of these, as Wu, Lin and Weng have it. Others get there by iteration, to two digits or so.
Value* coupled(OnnxEdit& edit, Value* first, int64_t classes) {
  const auto number = [&](double value) { return fixed_number(edit, DType::Float32, value); };
  const int64_t pairs = classes * (classes - 1) / 2;
  first = edit.before("Clip", {first, number(1e-7), number(1 - 1e-7)});
  Value* second = edit.before("Sub", {number(1), first});
  Value* nothing =
      edit.before("Mul", {edit.before("Slice", {first, edit.ints({0}), edit.ints({1}), edit.ints({1})}), number(0)});
  Value* all = edit.before("Concat", {first, second, nothing}, {{"axis", int64_t{1}}});
  std::vector<int64_t> places(room_for<int64_t>({classes, classes}), 2 * pairs);  // of a class and itself there is none
  std::vector<double> diagonal(room_for<double>({classes, classes}), 0.0);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    diagonal[static_cast<size_t>(i * classes + i)] = 1;
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      places[static_cast<size_t>(i * classes + j)] = pair;
      places[static_cast<size_t>(j * classes + i)] = pairs + pair;
    }
  }
  Value* r = edit.before("Gather", {all, fixed(edit, make_ints(places), "pairs")}, {{"axis", int64_t{1}}});
  r = edit.before("Reshape", {r, edit.ints({-1, classes, classes})});
  Value* own = edit.before("ReduceSumSquare", {r, edit.ints({1})});  // [rows, 1, classes]
  own = edit.before("Mul", {own, fixed(edit, make_floats(DType::Float32, {classes, classes}, diagonal), "diagonal")});
  Value* transposed = edit.before("Transpose", {r}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  Value* q = edit.before("Sub", {own, edit.before("Mul", {r, transposed})});
  Value* ones = edit.before("Expand", {number(1), edit.before("Shape", {own}, {{"end", int64_t{2}}})});
  ones = edit.before("Expand", {edit.before("Unsqueeze", {ones, edit.ints({2})}), edit.ints({1, classes, 1})});
  Value* p = edit.before("Squeeze", {edit.before("tonnx.Solve", {q, ones}), edit.ints({2})});
  return edit.before("Div", {p, edit.before("ReduceSum", {p, edit.ints({1})})});
}

bool expand_svm_classifier(const NodeView& n, OnnxEdit& edit) {
  const ClassLabels labels = class_labels(n, "classlabels_ints");
  const auto coefficients = n.find_floats("coefficients"), rho = n.find_floats("rho"),
             vectors = n.find_floats("support_vectors"), prob_a = n.find_floats("prob_a"),
             prob_b = n.find_floats("prob_b");
  const auto per_class = n.find_ints("vectors_per_class");
  const std::string post = n.s("post_transform");
  require(coefficients && !coefficients->empty() && rho && !rho->empty(), "there are no coefficients, or no rho");
  Value* x = rows_of(edit, edit.node().input(0));
  const bool has_probability = prob_a && !prob_a->empty();
  if (!per_class || per_class->empty()) {  // a linear machine for each class
    if (has_probability) fail_unsupported("probabilities of a linear machine");
    n.s("kernel_type");
    n.find_floats("kernel_params");
    const std::vector<double> offsets(static_cast<size_t>(labels.count()), (*rho)[0]);
    Value* scores = linear(edit, x, *coefficients, labels.count(), offsets);
    return edit.replace_with(
        {labels_of(edit, best_class(edit, scores), labels), transformed_scores(edit, scores, post)});
  }
  const auto classes = static_cast<int64_t>(per_class->size());
  int64_t total = 0;
  for (const int64_t count : *per_class) {
    require(count >= 0 && count < (int64_t{1} << 31), "a class has {} vectors", count);
    total += count;
  }
  require(classes == labels.count() && classes >= 2 && classes < 4096, "{} classes have vectors, of {}", classes,
          labels.count());
  require(vectors && total > 0 && static_cast<int64_t>(vectors->size()) % total == 0 && !vectors->empty(),
          "there are no {} support vectors", total);
  const int64_t pairs = classes * (classes - 1) / 2;
  require(static_cast<int64_t>(rho->size()) == pairs, "there are {} rho for {} pairs", rho->size(), pairs);
  Value* likeness = kernel(n, edit, x, *vectors, total);
  Value* scores = linear(edit, likeness, pair_coefficients(*coefficients, *per_class, total), pairs, *rho);
  if (has_probability) {
    require(prob_b && static_cast<int64_t>(prob_a->size()) == pairs && prob_b->size() == prob_a->size(),
            "prob_a and prob_b need a number for each pair");
    const auto list = [&](const std::vector<double>& values) {
      return fixed(edit, make_floats(DType::Float32, {pairs}, values));
    };
    Value* line = edit.before("Add", {edit.before("Mul", {scores, list(*prob_a)}), list(*prob_b)});
    Value* first = edit.before("Sigmoid", {edit.before("Neg", {line})});
    Value* both = nullptr;
    if (classes == 2) {
      Value* second = edit.before("Sub", {fixed_number(edit, DType::Float32, 1), first});
      both = edit.before("Concat", {first, second}, {{"axis", int64_t{1}}});
    } else {
      both = coupled(edit, first, classes);
    }
    // the label is what most pairs vote for, even where another class is more likely
    return edit.replace_with(
        {labels_of(edit, most_votes(edit, scores, classes), labels), transformed_scores(edit, both, post)});
  }
  if (classes > 2) {
    return edit.replace_with(
        {labels_of(edit, most_votes(edit, scores, classes), labels), transformed_scores(edit, scores, post)});
  }
  Value* number = edit.before("Sub", {fixed_number(edit, DType::Int64, 1), is_above(edit, scores, 0)});
  Value* both = scores_of_two(edit, scores, post, post != "NONE");
  return edit.replace_with({labels_of(edit, number, labels), both});
}

constexpr OnnxOp kMlLinearOnnx[] = {
    {.sig = "ai.onnx.ml::LinearRegressor(T X, *, int targets=1, floats? intercepts, floats? coefficients, str "
            "post_transform=\"NONE\") -> tensor(float) Y",
     .since = 1,
     .expand = expand_linear_regressor},
    {.sig =
         "ai.onnx.ml::LinearClassifier(T1 X, *, str post_transform=\"NONE\", ints? classlabels_ints, strs? "
         "classlabels_strings, int multi_class=0, floats? intercepts, floats coefficients) -> (T2 Y, tensor(float) Z)",
     .since = 1,
     .note = kLabelNote,
     .expand = expand_linear_classifier},
    {.sig = "ai.onnx.ml::SVMRegressor(T X, *, floats? rho, floats? coefficients, int n_supports=0, int one_class=0, "
            "floats? "
            "support_vectors, str post_transform=\"NONE\", floats? kernel_params, str kernel_type=\"LINEAR\") -> "
            "tensor(float) Y",
     .since = 1,
     .expand = expand_svm_regressor},
    {.sig = "ai.onnx.ml::SVMClassifier(T1 X, *, ints? classlabels_ints, floats? rho, floats? prob_b, floats? "
            "coefficients, strs? "
            "classlabels_strings, floats? prob_a, floats? support_vectors, ints? vectors_per_class, str "
            "post_transform=\"NONE\", floats? kernel_params, str kernel_type=\"LINEAR\") -> (T2 Y, tensor(float) Z)",
     .since = 1,
     .note = "labels that are strings come out as the numbers of their classes",
     .expand = expand_svm_classifier},
};

}  // namespace

extern const OpFamily kMlLinearOps;
constinit const OpFamily kMlLinearOps{"ml_linear", kMlLinearOnnx, {}};

}  // namespace tonnx
