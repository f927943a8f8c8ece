// verify_probed_test.cpp - differences that no output shows, and which weights a comparison says something about.
#include <tonnx/probe.h>

#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

#include "models.h"

namespace {

using tonnx::DType;
using tonnx::Model;
using tonnx::Tensor;
using tonnx::Type;

using Numbers = std::map<std::string, double>;
struct Computed {
  std::string name;
  std::function<double(const Numbers&)> value;
};

/// A "runtime" that computes one value after the other for each element of `x`; the last is its output `y`. Weights are
/// numbers, and derivatives differences.
class Steps : public tonnx::ProbedRunner {
 public:
  Steps(Numbers weights, std::vector<Computed> steps) : weights_(std::move(weights)), steps_(std::move(steps)) {}

  std::vector<Value> inputs() const override { return {{"x", Type::tensor(DType::Float32, {64})}}; }
  std::vector<std::string> outputs() const override { return {"y"}; }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) override { return run_inner(inputs, {last()}); }
  std::vector<Runner::Step> inner() const override {
    std::vector<Runner::Step> result;
    for (const Computed& step : steps_) result.emplace_back(step.name);
    return result;
  }
  std::vector<Tensor> run_inner(const std::vector<Tensor>& inputs, const std::vector<size_t>& places) override {
    return values(inputs, {}, places, weights_);
  }
  std::vector<Tensor> run_with(const std::vector<Tensor>& inputs, const ByPlace& given) override {
    return recompute(inputs, given, {last()});
  }
  std::vector<Tensor> recompute(const std::vector<Tensor>& inputs, const ByPlace& given,
                                const std::vector<size_t>& wanted) override {
    if (!can_replace) throw std::runtime_error("cannot");
    return values(inputs, given, wanted, weights_);
  }
  std::optional<tonnx::Gradients> gradients(const std::vector<Tensor>& inputs, const Factors& factor,
                                            bool is_inside) override {
    if (!can_differentiate) throw std::runtime_error("no derivative");
    ByPlace factors;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!is_inside && i != last()) continue;
      const Tensor found = factor(is_inside ? i : 0, run_inner(inputs, {i}).front());
      if (found.dtype() != DType::Undefined) factors.emplace_back(i, found);
    }
    tonnx::Gradients found;
    std::vector<tonnx::WeightGradient>& result = found.weights;
    for (const auto& [name, weight] : weights_) {
      const double step = 1e-4 * std::max(std::abs(weight), 1e-3);
      Numbers more = weights_, less = weights_;
      more[name] += step;
      less[name] -= step;
      const auto slope = static_cast<float>((sum(inputs, factors, more) - sum(inputs, factors, less)) / (2 * step));
      result.push_back({name, Tensor::of<float>(DType::Float32, {1}, {static_cast<float>(weight)}),
                        Tensor::of<float>(DType::Float32, {1}, {slope})});
    }
    return found;
  }

  bool can_replace = true, can_differentiate = true;

 private:
  size_t last() const { return steps_.size() - 1; }

  std::vector<Numbers> computed(const std::vector<Tensor>& inputs, const ByPlace& replaced,
                                const Numbers& weights) const {
    std::vector<Numbers> result;
    for (const float x : inputs[0].as<float>()) {
      Numbers& numbers = result.emplace_back(weights);
      numbers["x"] = static_cast<double>(x);
      for (size_t i = 0; i < steps_.size(); ++i) {
        const std::string& name = steps_[i].name;
        numbers[name] = numbers["computed " + name] = steps_[i].value(numbers);
        for (const auto& [place, value] : replaced) {
          if (place == i) numbers[name] = static_cast<double>(value.as<float>()[result.size() - 1]);
        }
      }
    }
    return result;
  }
  std::vector<Tensor> values(const std::vector<Tensor>& inputs, const ByPlace& replaced,
                             const std::vector<size_t>& places, const Numbers& weights) const {
    std::vector<Tensor> result;
    const std::vector<Numbers> all = computed(inputs, replaced, weights);
    for (const size_t place : places) {
      std::vector<float> elements;
      for (const Numbers& numbers : all)
        elements.push_back(static_cast<float>(numbers.at("computed " + steps_[place].name)));
      result.push_back(Tensor::of(DType::Float32, {static_cast<int64_t>(elements.size())}, elements));
    }
    return result;
  }
  double sum(const std::vector<Tensor>& inputs, const ByPlace& factors, const Numbers& weights) const {
    const std::vector<Numbers> all = computed(inputs, {}, weights);
    double result = 0;
    for (const auto& [place, factor] : factors) {
      for (size_t i = 0; i < all.size(); ++i)
        result += all[i].at(steps_[place].name) * static_cast<double>(factor.as<float>()[i]);
    }
    return result;
  }

  Numbers weights_;
  std::vector<Computed> steps_;
};

/// A graph in which each value is made of the one before it.
Model chain_of(const std::vector<std::string>& names) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  auto value = edit.add_input("x", Type::tensor(DType::Float32, {64}));
  for (const std::string& name : names) value = edit.add_node("Relu", {value}, {.outputs = {name}}).output();
  edit.add_output(value);
  return model;
}

/// A branch that is never taken: `gate` is 0 at all inputs that are drawn.
std::vector<Computed> with_dead_branch() {
  return {{"h", [](const Numbers& n) { return n.at("scale") * n.at("x"); }},
          {"gate", [](const Numbers& n) { return std::max(n.at("h") - n.at("bias"), 0.0); }},
          {"y", [](const Numbers& n) { return n.at("gate") * n.at("branch") + n.at("trunk") * std::tanh(n.at("x")); }}};
}
const Numbers kWeights = {{"scale", 2}, {"bias", 1e6}, {"branch", 3}, {"trunk", 1.5}};

TEST(ApiVerifyProbed, ADifferenceThatNoOutputShowsIsOne) {
  const Model model = chain_of({"h", "gate", "y"});
  Numbers other = kWeights;
  other["scale"] = 2.5;
  Steps a(kWeights, with_dead_branch()), b(other, with_dead_branch());
  EXPECT_TRUE(tonnx::verify(a, b, model, {.outputs_only = true}));  // nobody looks inside
  const tonnx::VerifyResult result = tonnx::verify(a, b, model);    // weights are left, so that it looks by itself
  EXPECT_FALSE(result) << result.text;
  for (const tonnx::OutputComparison& output : result.outputs) EXPECT_TRUE(output.is_same);
  ASSERT_TRUE(result.is_hidden_difference) << result.text;
  EXPECT_EQ(result.first_difference->name, "h");
  EXPECT_NE(result.difference.find("no output shows it: h "), std::string::npos) << result.difference;
  EXPECT_NE(result.verdict.find("DIFFERENT inside"), std::string::npos) << result.text;

  a.can_replace = false;  // then nobody can tell whether it is one
  EXPECT_TRUE(tonnx::verify(a, b, model, {.layers = true}));
  Steps same(kWeights, with_dead_branch());
  EXPECT_TRUE(tonnx::verify(same, same, model, {.layers = true}));
}

TEST(ApiVerifyProbed, TwoWaysToComputeTheSameAreNoDifference) {
  const auto by = [](double number) {
    return std::vector<Computed>{{"t", [=](const Numbers& n) { return n.at("x") + number; }},
                                 {"u", [](const Numbers& n) { return 1000 * n.at("t"); }},  // which nothing depends on
                                 {"y", [=](const Numbers& n) { return n.at("t") - number + 0 * n.at("u"); }}};
  };
  Steps a({}, by(1)), b({}, by(2));
  const tonnx::VerifyResult result = tonnx::verify(a, b, chain_of({"t", "u", "y"}), {.layers = true});
  EXPECT_TRUE(result) << result.text;
  ASSERT_TRUE(result.first_difference) << result.text;
  EXPECT_EQ(result.first_difference->name, "t");
  EXPECT_FALSE(result.is_hidden_difference);
}

/// What a comparison has seen is what it would have found: a model whose weight is off by as much as that differs.
TEST(ApiVerifyProbed, CoverageIsWhatWouldBeFound) {
  const Model model = chain_of({"h", "gate", "y"});
  Steps a(kWeights, with_dead_branch()), b(kWeights, with_dead_branch());
  const tonnx::VerifyResult result = tonnx::verify(a, b, model);
  EXPECT_TRUE(result) << result.text;
  EXPECT_GE(result.draws.size(), 4U);
  ASSERT_TRUE(result.coverage);
  const tonnx::Coverage& coverage = *result.coverage;
  EXPECT_EQ(coverage.weights, kWeights.size());
  EXPECT_EQ(coverage.outputs, 1U) << coverage.text();
  EXPECT_EQ(coverage.inside, 1U) << coverage.text();
  EXPECT_FALSE(coverage.is_complete());
  size_t outside = 0, inside = 0;
  for (const auto& [name, weight] : kWeights) {
    Numbers off = kWeights;
    off[name] = weight * 1.01;
    Steps other(off, with_dead_branch());
    const bool is_hidden = std::any_of(coverage.hidden.begin(), coverage.hidden.end(),
                                       [&, key = name](const auto& hidden) { return hidden.first == key; });
    EXPECT_EQ(bool(tonnx::verify(a, other, model)), is_hidden) << name;
    outside += !tonnx::verify(a, other, model, {.draws = 6, .outputs_only = true}) ? 1 : 0;
    inside += is_hidden ? 0 : 1;
  }
  EXPECT_EQ(outside, coverage.outputs);
  EXPECT_EQ(inside, coverage.outputs + coverage.inside);
  EXPECT_NE(coverage.text().find("the outputs depend on 25 % of the weights at these inputs (1 of 4), values inside "
                                 "that were compared on 1 more; not judged: bias ("),
            std::string::npos)
      << coverage.text();
}

TEST(ApiVerifyProbed, WhoeverCanBeDifferentiatedIs) {
  const std::vector<Computed> steps = {{"y", [](const Numbers& n) { return n.at("w") * std::sin(n.at("x")); }}};
  const Model model = chain_of({"y"});
  Steps a({{"w", 2}}, steps), b({{"w", 2}}, steps);
  for (const bool is_second : {true, false}) {
    a.can_differentiate = !is_second;
    b.can_differentiate = is_second;
    const tonnx::VerifyResult result = tonnx::verify(a, b, model);
    EXPECT_TRUE(result);
    EXPECT_EQ(result.draws.size(), 1U);
    ASSERT_TRUE(result.coverage);
    EXPECT_EQ(result.coverage->outputs, 1U);
    EXPECT_TRUE(result.coverage->is_complete());
    EXPECT_EQ(result.coverage->text(), "the outputs depend on 100 % of the weights at these inputs (1 of 1)");
  }
  a.can_differentiate = b.can_differentiate = false;
  const tonnx::VerifyResult result = tonnx::verify(a, b, model);
  EXPECT_TRUE(result);
  EXPECT_FALSE(result.coverage);
  EXPECT_EQ(result.inside, 1U);  // so values inside are compared
}

}  // namespace
