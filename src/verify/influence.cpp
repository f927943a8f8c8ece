// influence.cpp - asks a runner for derivatives, and tells from them which weights a comparison has seen.
#include "verify/influence.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace tonnx::judge {
namespace {

constexpr double kProbe = 0.01;  // the relative change of a weight that is to be seen

/// Random signs, in units of what may differ: the gradient of the sum is that of all elements at once. A value weighs
/// as much as one of its usual elements does: that they differ is seen where one of them does.
TensorPtr factors_of(const Tensor& value, const std::pair<double, double>& allowed, std::mt19937_64& engine) {
  const int64_t count = value.count();
  const double weight = std::sqrt(static_cast<double>(std::max<int64_t>(count, 1))) / 4;
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * sizeof(float));
  std::array<double, 1024> run{};
  for (int64_t at = 0; at < count; at += static_cast<int64_t>(run.size())) {
    const auto part = std::span(run).first(std::min(run.size(), static_cast<size_t>(count - at)));
    read_numbers(value, at, part);
    for (size_t i = 0; i < part.size(); ++i) {
      const double may_be = std::max(allowed.second + allowed.first * std::abs(part[i]), 1e-30);
      const double factor = (engine() % 2 == 0 ? 1 : -1) / may_be / weight;
      const auto rounded = static_cast<float>(factor);
      const float kept = std::isfinite(part[i]) && std::isfinite(rounded) ? rounded : 0;
      std::memcpy(bytes.data() + (static_cast<size_t>(at) + i) * sizeof(float), &kept, sizeof(float));
    }
  }
  auto result = std::make_shared<Tensor>();
  result->dtype = DType::Float32;
  result->dims = value.dims;
  result->data = Bytes::own(std::move(bytes));
  return result;
}

/// Not zeros, which hold nothing, and not the statistics of normalisations, which do what scale and bias of the same
/// layer do.
bool counts(const WeightGradient& each) {
  if (each.name.ends_with("running_mean") || each.name.ends_with("running_var") || !holds_floats(*each.weight))
    return false;
  std::array<double, 1024> run{};
  for (int64_t at = 0; at < each.weight->count(); at += static_cast<int64_t>(run.size())) {
    const auto left = static_cast<size_t>(each.weight->count() - at);
    const auto part = std::span(run).first(std::min(run.size(), left));
    read_numbers(*each.weight, at, part);
    if (std::any_of(part.begin(), part.end(), [](double number) { return number != 0; })) return true;
  }
  return false;
}

/// How far a change of all elements by kProbe moves the sum: 1 is what is seen.
double size_of(const WeightGradient& each) {
  require(each.gradient->count() == each.weight->count() && holds_floats(*each.gradient),
          "the gradient of the weight '{}' has {} elements, and the weight {}", each.name, each.gradient->count(),
          each.weight->count());
  double squares = 0;
  std::array<double, 1024> weight{}, gradient{};
  for (int64_t at = 0; at < each.weight->count(); at += static_cast<int64_t>(weight.size())) {
    const size_t size = std::min(weight.size(), static_cast<size_t>(each.weight->count() - at));
    read_numbers(*each.weight, at, std::span(weight).first(size));
    read_numbers(*each.gradient, at, std::span(gradient).first(size));
    for (size_t i = 0; i < size; ++i) {
      const double product = weight[i] * gradient[i];
      if (std::isfinite(product)) squares += product * product;
    }
  }
  return kProbe * std::sqrt(squares);
}

}  // namespace

std::optional<Influence> influence_of(Runner& runner, const Tensors& feeds, const Allowed& allowed, bool is_inside) {
  std::mt19937_64 engine(5);
  const Factors factors = [&](size_t place, const TensorPtr& value) -> TensorPtr {
    const auto at = allowed.find(place);
    return at == allowed.end() || !holds_floats(*value) ? nullptr : factors_of(*value, at->second, engine);
  };
  std::optional<Gradients> found;
  try {
    found = runner.gradients(feeds, factors, is_inside);
  } catch (const Failure&) {
    return std::nullopt;  // an operator without a derivative
  }
  if (!found) return std::nullopt;
  Influence influence;
  influence.work = found->work;
  for (const WeightGradient& each : found->weights) {
    if (!counts(each)) continue;
    influence.moved.emplace_back(each.name, each.gradient ? std::optional(size_of(each)) : std::nullopt);
  }
  if (influence.moved.empty()) return std::nullopt;
  return influence;
}

void note(const Influence& influence, bool is_inside, Coverage& coverage) {
  if (coverage.weights == 0) {
    coverage.weights = influence.moved.size();
    for (const auto& [name, size] : influence.moved) coverage.hidden.emplace_back(name, "not reached");
  }
  for (const auto& [name, size] : influence.moved) {
    const auto at = std::find_if(coverage.hidden.begin(), coverage.hidden.end(),
                                 [&, key = std::string_view(name)](const auto& hidden) { return hidden.first == key; });
    if (at == coverage.hidden.end() || !size) continue;
    if (*size < 1) {
      at->second = is_inside ? "hardly moves what was compared" : "outputs hardly move with it";
      continue;
    }
    coverage.hidden.erase(at);
    ++(is_inside ? coverage.inside : coverage.outputs);
  }
}

}  // namespace tonnx::judge
