// layers.cpp - prints a table of the layers of a model, with their types and weights: layers model.onnx.
#include <tonnx/tonnx.h>

#include <iomanip>
#include <iostream>

namespace {

void print_layers(const tonnx::GraphView& graph, int depth) {
  for (const tonnx::NodeView& node : graph) {
    size_t bytes = 0;
    for (const tonnx::ValueView& input : node.inputs()) {
      if (input && input.is_initializer()) bytes += input.tensor().bytes().size();
    }
    std::cout << std::string(2 * static_cast<size_t>(depth), ' ') << std::left << std::setw(20) << node.op()
              << std::setw(28) << node.name() << std::setw(30) << tonnx::text_of(node.output().type()) << bytes
              << " bytes of weights\n";
    for (const tonnx::GraphView& inner : node.subgraphs()) print_layers(inner, depth + 1);
  }
}

void print_modules(const tonnx::ModuleInfo& module) {
  std::cout << "module " << (module.path.empty() ? "." : module.path) << ' ' << module.type << " has "
            << module.keys.size() << " weights\n";
  for (const tonnx::ModuleInfo& child : module.children) print_modules(child);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  try {
    tonnx::Model model = tonnx::Model::read(argv[1]);
    if (model.format() == tonnx::Format::Onnx) model.infer_shapes();
    for (const tonnx::ValueView& input : model.graph().inputs())
      std::cout << "input " << input.name() << ' ' << tonnx::text_of(input.type()) << '\n';
    print_layers(model.graph(), 0);
    print_modules(model.modules());
  } catch (const tonnx::Error& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
