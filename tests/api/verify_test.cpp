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
  EXPECT_TRUE(result) << result.text;
  EXPECT_EQ(result.difference, "");
  EXPECT_EQ(result.draws.size(), 3U);
  ASSERT_EQ(result.inputs.size(), 1U);
  EXPECT_EQ(result.inputs[0].second, "float32[1, 3, 64, 64]");  // a batch of one, an image
  EXPECT_GT(result.outputs.at(0).max_abs, 0);
}

TEST(ApiVerify, OneElementIsEnough) {
  Elementwise a([](float x) { return x; }), b([](float x) { return x > 2.5F ? x * 1.001F : x; });
  const tonnx::VerifyResult first = tonnx::verify(a, b, one_node("Identity"), {.outputs_only = true});
  EXPECT_TRUE(first) << first.text;  // in [0, 1) nothing shows
  const tonnx::VerifyResult result = tonnx::verify(a, b, one_node("Identity"));
  EXPECT_FALSE(result);
  EXPECT_NE(result.difference.find("y  float32[1, 3, 64, 64]  max abs"), std::string::npos);
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
  EXPECT_THROW(tonnx::verify(b, a, one_node("Identity")), tonnx::CannotRun);  // then nothing is said of the other
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

/// A "runtime" that looks at what it is given, and gives nothing that matters.
class Witness : public tonnx::Runner {
 public:
  explicit Witness(const Model& model) : model_(model) {}
  std::vector<Value> inputs() const override {
    std::vector<Value> values;
    for (const tonnx::ValueView input : model_.graph().inputs())
      values.push_back({std::string(input.name()), input.type()});
    return values;
  }
  std::vector<std::string> outputs() const override { return {"y"}; }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) override {
    given.push_back(inputs);
    return {Tensor::of<float>(DType::Float32, {1}, {1})};
  }
  std::vector<std::vector<Tensor>> given;

 private:
  const Model& model_;
};

TEST(ApiVerify, IndicesAreRowsOfTheirTable) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  const auto ids = edit.add_input("ids", Type::tensor(DType::Int64, {"batch", "sequence"}));
  const auto mask = edit.add_input("attention_mask", Type::tensor(DType::Int64, {"batch", "sequence"}));
  const auto table = edit.add_initializer("table", api_test::floats({50, 4}));
  const auto cast = edit.add_node("Identity", {ids});
  edit.add_output(edit.add_node("Gather", {table, cast.output()}, {.outputs = {"y"}}).output());
  edit.add_output(edit.add_node("Identity", {mask}, {.outputs = {"m"}}).output());
  Witness a(model), b(model);
  EXPECT_TRUE(tonnx::verify(a, b, model, {.draws = 6}));
  ASSERT_EQ(a.given.size(), 6U);
  int64_t largest = 0;
  bool has_zero = false;
  for (const auto& inputs : a.given) {
    EXPECT_EQ(inputs[0].dims()[0], 1);
    EXPECT_EQ(inputs[1].dims()[1], inputs[0].dims()[1]);  // sizes of one name are equal
    for (const int64_t id : inputs[0].as<int64_t>()) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, 50);
      largest = std::max(largest, id);
    }
    for (const int64_t seen : inputs[1].as<int64_t>()) {
      EXPECT_TRUE(seen == 0 || seen == 1);
      has_zero = has_zero || seen == 0;
    }
  }
  EXPECT_GT(largest, 9);                                                      // and not only the small ones
  EXPECT_TRUE(has_zero);                                                      // not all of a mask is 1 in every draw
  for (const int64_t seen : a.given[0][1].as<int64_t>()) EXPECT_EQ(seen, 1);  // but in the first
}

TEST(ApiVerify, SizesAreLargeEnoughForWhatHappensInside) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  tonnx::ValueView x = edit.add_input("x", Type::tensor(DType::Float32, {"batch", 1, "samples"}));
  const auto weight = edit.add_initializer("w", api_test::floats({1, 1, 5}));
  for (int i = 0; i < 4; ++i) {
    const std::vector<int64_t> strides{4};
    x = edit.add_node("Conv", {x, weight}, {.attributes = {{"strides", strides}}}).output();
  }
  edit.rename(x, "y");
  edit.add_output(x);
  Witness a(model), b(model);
  EXPECT_TRUE(tonnx::verify(a, b, model, {.draws = 1}));
  // a window of 5 that moves by 4, four times: the last one needs 2 places, and so 9, 37, 149, 597 before it
  const int64_t size = a.given.at(0).at(0).dims()[2];
  int64_t left = size;
  for (int i = 0; i < 4; ++i) left = (left - 5) / 4 + 1;
  EXPECT_GE(left, 2) << size;
  EXPECT_LE(size, 4096);
  // one that is given is kept
  EXPECT_TRUE(tonnx::verify(a, b, model, {.shapes = {{"x", {3, -1, 700}}}, .draws = 1}));
  EXPECT_EQ(std::vector<int64_t>(a.given.back()[0].dims().begin(), a.given.back()[0].dims().end()),
            (std::vector<int64_t>{3, 1, 700}));
}

TEST(ApiVerify, SizesThatAreSumsFollowFromOthers) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", Type::tensor(DType::Float32, {"batch", "now"}));
  const auto past = edit.add_input("past", Type::tensor(DType::Float32, {"batch", "before"}));
  const auto mask = edit.add_input("all", Type::tensor(DType::Float32, {"batch", "before + now"}));
  const auto joined = edit.add_node("Concat", {past, x}, {.attributes = {{"axis", 1}}});
  edit.add_output(edit.add_node("Add", {joined.output(), mask}, {.outputs = {"y"}}).output());
  Witness a(model), b(model);
  EXPECT_TRUE(tonnx::verify(a, b, model, {.shapes = {{"past", {-1, 5}}}, .draws = 1}));
  const auto& given = a.given.at(0);
  EXPECT_EQ(given[1].dims()[1], 5);
  EXPECT_EQ(given[2].dims()[1], 5 + given[0].dims()[1]);
}

TEST(ApiVerify, BothSidesOfAComparisonAreDrawn) {
  Model model = Model::create();
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("threshold", Type::tensor(DType::Float32, {1}));
  const auto seven = edit.add_initializer("seven", Tensor::of<float>(DType::Float32, {1}, {7}));
  edit.add_output(edit.add_node("Greater", {x, seven}, {.outputs = {"y"}}).output());
  Witness a(model), b(model);
  EXPECT_TRUE(tonnx::verify(a, b, model, {.draws = 2}));
  EXPECT_GT(a.given.at(0)[0].as<float>()[0], 7);
  EXPECT_LT(a.given.at(1)[0].as<float>()[0], 7);
}

/// Three functions one behind the other, whose values it tells under names of its own.
class Layers : public Elementwise {
 public:
  using Function = tonnx::Callback<float(float)>;
  Layers(std::vector<std::string> names, std::vector<Function> functions)
      : Elementwise([](float x) { return x; }), names_(std::move(names)), functions_(std::move(functions)) {}
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) override { return run_inner(inputs, {names_.size() - 1}); }
  std::vector<Step> inner() const override { return {names_.begin(), names_.end()}; }
  std::vector<Tensor> run_inner(const std::vector<Tensor>& inputs, const std::vector<size_t>& places) override {
    std::vector<Tensor> values(places.size());
    std::vector<float> x(inputs[0].as<float>().begin(), inputs[0].as<float>().end());
    for (size_t i = 0; i < names_.size(); ++i) {
      for (float& each : x) each = functions_[i](each);
      for (size_t k = 0; k < places.size(); ++k) {
        if (places[k] == i)
          values[k] = Tensor::of(DType::Float32, {inputs[0].dims().begin(), inputs[0].dims().end()}, x);
      }
    }
    return values;
  }

 private:
  std::vector<std::string> names_;
  std::vector<Function> functions_;
};

TEST(ApiVerify, TheFirstLayerThatDiffersIsNamed) {
  const Layers::Function grow = [](float x) { return std::exp(x / 8); }, more = [](float x) { return x + 3; },
                         root = [](float x) { return std::sqrt(x); };
  const Layers::Function wrong = [](float x) { return x + 3.05F; };
  Layers a({"/exp", "/add", "/sqrt"}, {grow, more, root});
  Layers same({"exp_1", "add_1", "sqrt_1"}, {grow, more, root});  // other names, and the same values
  const tonnx::VerifyResult fine = tonnx::verify(a, same, one_node("Identity"), {.layers = true});
  EXPECT_TRUE(fine) << fine.text;
  ASSERT_EQ(fine.layers.size(), 3U);
  EXPECT_EQ(fine.layers[1].counterpart, "add_1");
  EXPECT_FALSE(fine.first_difference);
  Layers other({"_exp", "_add", "_sqrt"}, {grow, wrong, root});
  const tonnx::VerifyResult result = tonnx::verify(a, other, one_node("Identity"), {.layers = true});
  EXPECT_FALSE(result);
  ASSERT_EQ(result.layers.size(), 3U) << result.text;
  EXPECT_TRUE(result.layers[0].is_same);
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->name, "/add");
  EXPECT_EQ(result.first_difference->counterpart, "_add");
  EXPECT_NEAR(result.first_difference->max_abs, 0.05, 1e-5);
  EXPECT_NE(result.text.find("first layer that differs: /add () = _add ()"), std::string::npos) << result.text;
  EXPECT_TRUE(tonnx::verify(a, other, one_node("Identity")).layers.empty());  // nobody asked
}

}  // namespace
