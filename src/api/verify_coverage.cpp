// verify_coverage.cpp - finds out by derivatives how far what was compared depends on each weight.
#include "api/verify_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tonnx::v1 {

ProbedRunner::~ProbedRunner() = default;
std::vector<Tensor> ProbedRunner::run_with(const std::vector<Tensor>& /*inputs*/, const Named& /*values*/,
                                           const std::vector<std::string>& /*names*/) {
  return {};
}
std::vector<WeightGradient> ProbedRunner::gradients(const std::vector<Tensor>& /*inputs*/, const Named& /*factors*/) {
  return {};
}

namespace {

constexpr double kProbe = 0.01;               // the relative change of a weight that is to be seen
constexpr size_t kDifferentiatedAtOnce = 64;  // values inside whose sum is differentiated
constexpr const char* kNotReached = "not reached";

bool holds_floats(const Tensor& tensor) { return holds_numbers(tensor) && core::is_float(core_of(tensor.dtype())); }

/// Random signs, in units of what may differ: the gradient of the sum is that of all elements at once. A value weighs
/// as much as one of its usual elements does: that they differ is seen where one of them does.
Tensor factors_of(const Compared& compared, std::mt19937_64& engine) {
  const std::vector<double> numbers = numbers_of(compared.value);
  const double weight = std::sqrt(static_cast<double>(std::max<size_t>(numbers.size(), 1))) / 4;
  std::vector<float> factors;
  factors.reserve(numbers.size());
  for (const double number : numbers) {
    const double allowed = std::max(compared.atol + compared.rtol * std::abs(number), 1e-30);
    const double factor = (engine() % 2 == 0 ? 1 : -1) / allowed / weight;
    const auto rounded = static_cast<float>(factor);
    factors.push_back(std::isfinite(number) && std::isfinite(rounded) ? rounded : 0);
  }
  return Tensor::of(DType::Float32, {compared.value.dims().begin(), compared.value.dims().end()}, factors);
}

/// Not zeros, which hold nothing, and not the statistics of normalisations, which do what scale and bias of the same
/// layer do.
bool counts(const WeightGradient& each) {
  if (each.name.ends_with("running_mean") || each.name.ends_with("running_var") || !holds_floats(each.weight))
    return false;
  const std::vector<double> numbers = numbers_of(each.weight);
  return std::any_of(numbers.begin(), numbers.end(), [](double number) { return number != 0; });
}

/// How far a change of all elements by kProbe moves the sum: 1 is what is seen.
double influence_of(const WeightGradient& each) {
  core::require(each.gradient->count() == each.weight.count() && holds_floats(*each.gradient),
                "the gradient of the weight '{}' has {} elements, and the weight {}", each.name, each.gradient->count(),
                each.weight.count());
  const std::vector<double> weight = numbers_of(each.weight), gradient = numbers_of(*each.gradient);
  double squares = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    const double product = weight[i] * gradient[i];
    if (std::isfinite(product)) squares += product * product;
  }
  return kProbe * std::sqrt(squares);
}

void note(const WeightGradient& each, bool is_inside, Coverage& coverage) {
  const auto at = std::find_if(coverage.hidden.begin(), coverage.hidden.end(),
                               [&](const auto& hidden) { return hidden.first == each.name; });
  if (at == coverage.hidden.end() || !each.gradient) return;
  if (influence_of(each) < 1) {
    at->second = is_inside ? "hardly moves what was compared" : "outputs hardly move with it";
    return;
  }
  coverage.hidden.erase(at);
  ++(is_inside ? coverage.inside : coverage.outputs);
}

}  // namespace

bool note_influence(const RunnerAtInputs& model, const std::vector<Compared>& values, bool is_inside,
                    Coverage& coverage) {
  auto* probed = dynamic_cast<ProbedRunner*>(&model.runner);
  if (probed == nullptr) return false;
  std::mt19937_64 engine(5);
  ProbedRunner::Named factors;
  for (const Compared& each : values) {
    if (holds_floats(each.value)) factors.emplace_back(each.name, factors_of(each, engine));
  }
  std::vector<WeightGradient> gradients;
  try {
    gradients = callers([&] { return probed->gradients(model.inputs, factors); });
  } catch (const CallersException&) {
    return false;  // an operator without a derivative
  }
  std::erase_if(gradients, [](const WeightGradient& each) { return !counts(each); });
  if (gradients.empty()) return false;
  if (coverage.weights == 0) {
    coverage.weights = gradients.size();
    for (const WeightGradient& each : gradients) coverage.hidden.emplace_back(each.name, kNotReached);
  }
  for (const WeightGradient& each : gradients) note(each, is_inside, coverage);
  return true;
}

bool note_layers(const RunnerAtInputs& model, const std::vector<LayerComparison>& layers, bool is_second,
                 Coverage& coverage) {
  std::vector<const LayerComparison*> same;
  for (const LayerComparison& layer : layers) {
    if (layer.is_same) same.push_back(&layer);
  }
  bool is_noted = false;
  for (size_t i = 0; i < same.size() && !coverage.is_complete(); i += kDifferentiatedAtOnce) {
    std::vector<std::string> names;
    for (size_t k = i; k < std::min(i + kDifferentiatedAtOnce, same.size()); ++k)
      names.push_back(is_second ? same[k]->counterpart : same[k]->name);
    const std::vector<Tensor> values = callers([&] { return model.runner.run_inner(model.inputs, names); });
    std::vector<Compared> compared;
    for (size_t k = 0; k < std::min(values.size(), names.size()); ++k)
      compared.push_back({names[k], values[k], same[i + k]->rtol, same[i + k]->atol});
    if (!note_influence(model, compared, true, coverage)) return is_noted;
    is_noted = true;
  }
  return is_noted;
}

std::string Coverage::text() const {
  constexpr size_t kShown = 3;
  if (weights == 0) return "no weights were looked at";
  const double share = 100 * static_cast<double>(outputs) / static_cast<double>(weights);
  // all of them is said of nothing less
  std::string text =
      fmt::format("the outputs depend on {} % of the weights at these inputs ({} of {})",
                  outputs == weights ? "100" : fmt::format("{:.3g}", std::min(share, 99.9)), outputs, weights);
  if (inside > 0) text += fmt::format(", values inside that were compared on {} more", inside);
  for (size_t i = 0; i < std::min(hidden.size(), kShown); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "; not judged: " : ", ", hidden[i].first, hidden[i].second);
  if (hidden.size() > kShown) text += fmt::format(" and {} more", hidden.size() - kShown);
  return text;
}

}  // namespace tonnx::v1
