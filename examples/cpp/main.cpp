// main.cpp - converts one model with the C++ library: convert_model model.onnx model.py.

#include <tonnx/tonnx.h>

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: convert_model model.onnx model.py\n";
    return 1;
  }
  try {
    const tonnx::Model model = tonnx::Model::read(argv[1]);
    std::cout << argv[1] << ": " << model.node_count() << " node" << (model.node_count() == 1 ? "" : "s") << '\n';
    model.write(argv[2]);
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
