// cut.cpp - cuts a model at a layer, whose result becomes the output: cut model.onnx value features.onnx.
#include <tonnx/tonnx.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  try {
    tonnx::Model model = tonnx::Model::read(argv[1]);
    const tonnx::ValueView value = model.graph().find_value(argv[2]);
    if (!value) {
      std::cerr << "error: the model has no value '" << argv[2] << "'\n";
      return 1;
    }
    model.infer_shapes();  // so that the file says what the new output is
    tonnx::GraphEditor graph = model.edit();
    for (const tonnx::ValueView& output : model.graph().outputs()) graph.remove_output(output);
    graph.add_output(value);
    const size_t removed = graph.remove_unused();
    model.write(argv[3]);
    std::cout << removed << " nodes are gone; the output is " << value.name() << ' ' << tonnx::text_of(value.type())
              << '\n';
  } catch (const tonnx::Error& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
