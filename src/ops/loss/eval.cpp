// eval.cpp - evaluation of losses: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
#include <cmath>

#include "ops/frame/eval_map.h"
#include "ops/loss/rows.h"

namespace tonnx {
namespace {

/// Scores of shape (N, C, d...), the class of each place, and the weight of each class.
struct Loss {
  std::vector<double> scores;
  int64_t classes = 0, inner = 1;  // inner: places of one sample
  std::vector<int64_t> dims;       // of the labels
  const Tensor* labels = nullptr;
  std::vector<double> weights;
};

std::optional<Loss> find_loss(const NodeView& n) {
  constexpr int64_t kMostNumbers = int64_t{1} << 27;
  const Tensor &x = *n.node().input(0)->constant, &labels = *n.node().input(1)->constant;
  if (!is_float(x.dtype) || !contains(kComputed, x.dtype) || x.dims.size() < 2 || x.count() > kMostNumbers ||
      !is_integer(labels.dtype))
    return std::nullopt;
  Loss loss{.classes = x.dims[1], .dims = x.dims, .labels = &labels};
  loss.dims.erase(loss.dims.begin() + 1);
  for (size_t i = 2; i < x.dims.size(); ++i) loss.inner *= x.dims[i];
  loss.weights.assign(static_cast<size_t>(loss.classes), 1.0);
  if (n.node().inputs().size() > 2 && n.node().input(2) != nullptr) {
    const Tensor& weights = *n.node().input(2)->constant;
    if (weights.dims != std::vector{loss.classes} || weights.dtype != x.dtype) return std::nullopt;
    loss.weights = numbers_of(weights);
  }
  if (labels.dims != loss.dims) return std::nullopt;
  loss.scores = numbers_of(x);
  return loss;
}

/// From the logarithms of probabilities.
TensorPtr negative_log_likelihood(const NodeView& n, const Loss& loss, DType dtype) {
  const std::string reduction = n.s("reduction");
  const auto ignored = n.find_i("ignore_index");
  std::vector<double> losses(static_cast<size_t>(count_of(loss.dims)));
  double sum = 0, weight = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const int64_t label = element_as_int(*loss.labels, static_cast<int64_t>(i));
    if (ignored && label == *ignored) continue;
    if (label < 0 || label >= loss.classes) return nullptr;
    const int64_t sample = static_cast<int64_t>(i) / loss.inner, place = static_cast<int64_t>(i) % loss.inner;
    const double factor = loss.weights[static_cast<size_t>(label)];
    losses[i] = -loss.scores[static_cast<size_t>((sample * loss.classes + label) * loss.inner + place)] * factor;
    sum += losses[i];
    weight += factor;
  }
  if (reduction == "none") return tensor_of(dtype, loss.dims, losses);
  if (reduction == "sum") return tensor_of(dtype, {}, {sum});
  return reduction == "mean" ? tensor_of(dtype, {}, {sum / weight}) : nullptr;
}

void take_log_softmax(Loss& loss) {
  const int64_t step = loss.inner, size = loss.classes * loss.inner;
  const auto count = static_cast<int64_t>(loss.scores.size());
  for (int64_t at = 0; at < count; at = at % size + 1 == step ? at - at % size + size : at + 1) {
    double* line = loss.scores.data() + at;
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t c = 0; c < loss.classes; ++c) largest = std::max(largest, line[c * step]);
    for (int64_t c = 0; c < loss.classes; ++c) sum += std::exp(line[c * step] - largest);
    for (int64_t c = 0; c < loss.classes; ++c) line[c * step] -= largest + std::log(sum);
  }
}

}  // namespace

Results eval_nll_loss(const NodeView& n) {
  const auto loss = find_loss(n);
  const TensorPtr result = loss ? negative_log_likelihood(n, *loss, n.node().input(0)->constant->dtype) : nullptr;
  return result ? Results(result) : Results();
}

Results eval_softmax_cross_entropy(const NodeView& n) {
  auto loss = find_loss(n);
  if (!loss) return {};
  const Tensor& x = *n.node().input(0)->constant;
  take_log_softmax(*loss);
  const TensorPtr result = negative_log_likelihood(n, *loss, x.dtype);
  if (!result) return {};
  Results results(result);
  if (n.output_count() > 1) results.push_back(tensor_of(x.dtype, x.dims, loss->scores));
  return results;
}

}  // namespace tonnx
