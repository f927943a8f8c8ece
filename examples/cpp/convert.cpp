// convert.cpp - converts one model: convert model.onnx model.pt2. It says before any work what would be in the way.
#include <tonnx/tonnx.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: convert model.onnx model.py\n";
    return 1;
  }
  try {
    const tonnx::Model model = tonnx::Model::read(argv[1]);
    std::cout << argv[1] << ": " << model.node_count() << " node" << (model.node_count() == 1 ? "" : "s") << '\n';
    for (const tonnx::UnsupportedOp& op : model.unsupported(tonnx::Format::Python))
      std::cout << op.domain << ' ' << op.op << '-' << op.version << " in " << op.places.size() << " places\n";
    model.write(argv[2], {.on_progress = [](double done) {
                  std::cout << static_cast<int>(100 * done) << " %\n";
                  return true;  // false: no more of it, and no half file
                }});
  } catch (const tonnx::Error& e) {
    std::cerr << "error: " << e.what() << '\n';
    return e.kind() == tonnx::Error::Kind::Unsupported ? 2 : 1;
  }
  return 0;
}
