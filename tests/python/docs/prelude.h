// prelude.h - what the blocks of C++ in the README and in docs/ find around them, so that they compile. The programs
// that they are from are in examples/cpp.
#include <tonnx/probe.h>
#include <tonnx/tonnx.h>

#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace torch::jit {
struct Module {};
Module load(std::istream& stream);
}  // namespace torch::jit

extern char** argv;
extern tonnx::Model model;
extern tonnx::GraphView graph;
extern tonnx::ValueView value;
extern int depth;
extern std::vector<std::byte> request;
extern torch::jit::Module module_;
extern tonnx::Runner &onnx_runtime, &libtorch;
extern tonnx::Tensor image;

void print_layers(const tonnx::GraphView& graph, int depth);
tonnx::Tensor weight(std::vector<int64_t> dims);
