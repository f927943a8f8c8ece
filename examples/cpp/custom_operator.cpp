// custom_operator.cpp - an operator that tonnx does not have, taught in both directions: custom_operator swish.pt2.
#include <tonnx/tonnx.h>

#include <iostream>

namespace {

tonnx::Registry my_operators() {
  tonnx::Registry registry;
  registry.add_onnx(
      "my.domain::Swish(T x, *, float beta=1.0) -> T y",
      [](const tonnx::OnnxNode& n, tonnx::AtenBuilder& aten) {
        const tonnx::ValueView x = n.input("x");
        return aten("mul.Tensor", {x, aten("sigmoid", {aten("mul.Tensor", {x, n.f("beta")})})});
      },
      /*like=*/"x");
  registry.add_aten("mylib::swish(Tensor x, float beta) -> Tensor",
                    [](const tonnx::AtenNode& n, tonnx::OnnxBuilder& onnx) {
                      return onnx("my.domain.Swish", {n.input("x")}, {{"beta", n.f("beta")}});
                    });
  return registry;
}

tonnx::Model swish() {
  tonnx::Model model = tonnx::Model::create();
  tonnx::GraphEditor graph = model.edit();
  const tonnx::Type type = tonnx::Type::tensor(tonnx::DType::Float32, {"n", 4});
  const auto x = graph.add_input("x", type);
  const auto node =
      graph.add_node("Swish", {x}, {.domain = "my.domain", .outputs = {"y"}, .attributes = {{"beta", 2.0}}});
  graph.set_type(node.output(), type);
  graph.add_output(node.output());
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  try {
    const tonnx::Registry registry = my_operators();
    const tonnx::Model model = swish();
    std::cout << model.unsupported(tonnx::Format::TorchExport).size() << " operator is unknown, "
              << model.unsupported(tonnx::Format::TorchExport, {.registry = &registry}).size()
              << " with the registry\n";
    model.write(argv[1], {.registry = &registry});
    std::cout << model.to_python({.registry = &registry});
  } catch (const tonnx::Error& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
