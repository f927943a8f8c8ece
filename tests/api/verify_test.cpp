// verify_test.cpp - comparisons of models by runners of a program's own.
#include <cmath>
#include <stdexcept>

#include "models.h"

namespace {

using tonnx::DType;
using tonnx::Error;
using tonnx::Model;
using tonnx::Tensor;
using tonnx::Type;

/// A "runtime" that applies a function to each element of its one input.
class Elementwise : public tonnx::Runner {
 public:
  Elementwise(tonnx::Callback<float(float)> function, std::vector<tonnx::Dim> shape = {"batch", 3, "h", "w"})
      : function_(std::move(function)), shape_(std::move(shape)) {}
  std::vector<Value> inputs() const override { return {{input_name, Type::tensor(DType::Float32, shape_)}}; }
  std::vector<std::string> outputs() const override { return {"y"}; }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) override {
    ++runs;
    if (inputs[0].dims().back() < least) throw std::length_error("too small");
    std::vector<float> result;
    for (const float x : inputs[0].as<float>()) result.push_back(function_(x));
    return {Tensor::of(DType::Float32, {inputs[0].dims().begin(), inputs[0].dims().end()}, result)};
  }
  std::string input_name = "x";
  int64_t least = 0;
  int runs = 0;

 private:
  tonnx::Callback<float(float)> function_;
  std::vector<tonnx::Dim> shape_;
};

Model one_node(const char* op) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", Type::tensor(DType::Float32, {"batch", 3, "h", "w"}));
  edit.add_output(edit.add_node(op, {x}, {.outputs = {"y"}}).output());
  return model;
}

TEST(ApiVerify, RoundingIsNoDifference) {
  Elementwise a([](float x) { return std::exp(x); }), b([](float x) { return std::nextafter(std::exp(x), 1e9F); });
  const tonnx::VerifyResult result = tonnx::verify(a, b, one_node("Exp"));
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.first_difference(), "");
  EXPECT_EQ(result.draws, 3);
  ASSERT_EQ(result.inputs.size(), 1U);
  EXPECT_EQ(result.inputs[0].second, "float32[1, 3, 64, 64]");  // a batch of one, an image
  EXPECT_GT(result.outputs.at(0).max_abs, 0);
}

TEST(ApiVerify, OneElementIsEnough) {
  Elementwise a([](float x) { return x; }), b([](float x) { return x > 2.5F ? x * 1.001F : x; });
  const tonnx::VerifyResult first = tonnx::verify(a, b, one_node("Identity"), {.draws = 1});
  EXPECT_TRUE(first) << first.text();  // in [0, 1) nothing shows
  const tonnx::VerifyResult result = tonnx::verify(a, b, one_node("Identity"));
  EXPECT_FALSE(result);
  EXPECT_NE(result.first_difference().find("y  float32[1, 3, 64, 64]  max abs"), std::string::npos);
  EXPECT_GT(result.outputs.at(0).wrong, 0);
  EXPECT_LT(result.outputs.at(0).wrong, 3 * 64 * 64 / 10);
  EXPECT_TRUE(tonnx::verify(a, b, one_node("Identity"), {.rtol = 0.01}));
}

TEST(ApiVerify, AModelThatMagnifiesRoundingIsAllowedTo) {
  // the tangent near its pole: a last digit of the input is thousands of them in the output
  const auto steep = [](float x) { return 1 / (x - std::nextafter(0.7F, 1.0F)); };
  Elementwise a(steep, {1}), b([&](float x) { return steep(std::nextafter(x, 1.0F)); }, {1});
  const Tensor x = Tensor::of<float>(DType::Float32, {1}, {0.70001F});
  EXPECT_TRUE(tonnx::verify(a, b, one_node("Tan"), {.inputs = {{"x", x}}}));
  EXPECT_EQ(a.runs, 2);
  EXPECT_FALSE(tonnx::verify(a, b, one_node("Tan"), {.inputs = {{"x", x}}, .rtol = 1e-6}));
}

TEST(ApiVerify, OtherSizesAreTriedWhereAModelCannotRun) {
  Elementwise a([](float x) { return x; }), b([](float x) { return x; });
  b.least = 200;
  b.input_name = "input";
  const tonnx::VerifyResult result = tonnx::verify(a, b, one_node("Identity"), {.draws = 1});
  EXPECT_EQ(result.inputs.at(0).second, "float32[1, 3, 224, 224]");
  b.least = 1 << 20;
  EXPECT_THROW(tonnx::verify(a, b, one_node("Identity")), std::length_error);
  EXPECT_EQ(tonnx::verify(a, a, one_node("Identity"), {.shapes = {{"x", {2, -1, 5, 7}}}}).inputs.at(0).second,
            "float32[2, 3, 5, 7]");
  EXPECT_THROW(tonnx::verify(a, a, one_node("Identity"), {.shapes = {{"z", {2}}}}), Error);
}

TEST(ApiVerify, NanIsLikeNanAndInfinityOnlyLikeItself) {
  const Tensor x = Tensor::of<float>(DType::Float32, {1}, {1});
  const auto same = [&](float p, float q) {
    Elementwise a([=](float) { return p; }, {1}), b([=](float) { return q; }, {1});
    return static_cast<bool>(tonnx::verify(a, b, one_node("Identity"), {.inputs = {{"x", x}}}));
  };
  EXPECT_TRUE(same(NAN, NAN));
  EXPECT_TRUE(same(INFINITY, INFINITY));
  EXPECT_FALSE(same(NAN, 1));
  EXPECT_FALSE(same(1, NAN));
  EXPECT_FALSE(same(INFINITY, -INFINITY));
  EXPECT_FALSE(same(INFINITY, 3e38F));
}

}  // namespace
