// build.cpp - builds a model node by node, checks it and writes it: build classifier.onnx.
#include <tonnx/tonnx.h>

#include <cmath>
#include <iostream>

namespace {

/// Some numbers, the same each time.
tonnx::Tensor weight(std::vector<int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<float>(i)) / 4);
  return tonnx::Tensor::of(tonnx::DType::Float32, std::move(dims), values);
}

tonnx::Model classifier() {
  tonnx::Model model = tonnx::Model::create(/*opset=*/17);
  tonnx::GraphEditor graph = model.edit();
  const auto image = graph.add_input("image", tonnx::Type::tensor(tonnx::DType::Float32, {"batch", 3, 32, 32}));
  const auto kernel = graph.add_initializer("conv.weight", weight({8, 3, 3, 3}));
  const auto conv = graph.add_node("Conv", {image, kernel},
                                   {.name = "/conv/Conv", .attributes = {{"strides", std::vector<int64_t>{2, 2}}}});
  const auto relu = graph.add_node("Relu", {conv.output()}, {.name = "/act/Relu", .outputs = {"features"}});
  const auto same = graph.add_node("Identity", {relu.output()});
  const auto pool = graph.add_node("GlobalAveragePool", {same.output()}, {.name = "/pool/GlobalAveragePool"});
  const auto flat = graph.add_node("Flatten", {pool.output()});
  const auto gemm = graph.add_node("Gemm",
                                   {flat.output(), graph.add_initializer("fc.weight", weight({10, 8})),
                                    graph.add_initializer("fc.bias", weight({10}))},
                                   {.name = "/fc/Gemm", .outputs = {"logits"}, .attributes = {{"transB", 1}}});
  graph.set_type(gemm.output(), tonnx::Type::tensor(tonnx::DType::Float32, {"batch", 10}));
  graph.add_output(gemm.output());
  model.check();  // names, order, operators and their arguments
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  try {
    classifier().write(argv[1]);
  } catch (const tonnx::Error& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
