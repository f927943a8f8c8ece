// run_libtorch.cpp - converts an ONNX model to TorchScript in memory, runs it with libtorch, and compares it with what
// another runtime gave: run_libtorch model.onnx input.bin output.bin. The files hold float32, as expected.py writes
// them.
#include <tonnx/tonnx.h>
#include <torch/script.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

namespace {

/// A model in libtorch.
class Libtorch : public tonnx::Runner {
 public:
  explicit Libtorch(const tonnx::Model& model) {
    const std::vector<std::byte> script = model.to_bytes(tonnx::Format::TorchScript);
    std::istringstream stream(std::string(reinterpret_cast<const char*>(script.data()), script.size()));
    module_ = torch::jit::load(stream);
    module_.eval();
    for (const tonnx::ValueView& input : model.graph().inputs())
      inputs_.push_back({std::string(input.name()), input.type()});
    for (const tonnx::ValueView& output : model.graph().outputs()) outputs_.emplace_back(output.name());
  }

  std::vector<Value> inputs() const override { return inputs_; }
  std::vector<std::string> outputs() const override { return outputs_; }
  std::vector<tonnx::Tensor> run(const std::vector<tonnx::Tensor>& inputs) override {
    const torch::NoGradGuard no_grad;
    std::vector<torch::jit::IValue> arguments;
    for (const tonnx::Tensor& input : inputs) {
      const std::vector<int64_t> dims(input.dims().begin(), input.dims().end());
      auto* data = const_cast<std::byte*>(input.bytes().data());  // libtorch has no views of what is const
      arguments.emplace_back(torch::from_blob(data, dims, torch::kFloat32));
    }
    const torch::Tensor result = module_.forward(arguments).toTensor().contiguous();
    const float* first = result.data_ptr<float>();
    return {tonnx::Tensor::of(tonnx::DType::Float32, result.sizes().vec(),
                              std::vector<float>(first, first + result.numel()))};
  }

 private:
  torch::jit::Module module_;
  std::vector<Value> inputs_;
  std::vector<std::string> outputs_;
};

std::vector<float> read_floats(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* first = reinterpret_cast<const float*>(text.data());
  return {first, first + text.size() / sizeof(float)};
}

/// What another runtime gave for one input.
class Recorded : public tonnx::Runner {
 public:
  Recorded(const tonnx::Runner& like, const char* path) : inputs_(like.inputs()), outputs_(like.outputs()) {
    const std::vector<float> values = read_floats(path);
    result_ = tonnx::Tensor::of(tonnx::DType::Float32, {2, static_cast<int64_t>(values.size()) / 2}, values);
  }
  std::vector<Value> inputs() const override { return inputs_; }
  std::vector<std::string> outputs() const override { return outputs_; }
  std::vector<tonnx::Tensor> run(const std::vector<tonnx::Tensor>&) override { return {result_}; }

 private:
  std::vector<Value> inputs_;
  std::vector<std::string> outputs_;
  tonnx::Tensor result_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  try {
    const tonnx::Model model = tonnx::Model::read(argv[1]);
    Libtorch libtorch(model);
    Recorded onnx_runtime(libtorch, argv[3]);
    const std::vector<float> pixels = read_floats(argv[2]);
    const tonnx::Tensor image = tonnx::Tensor::of(tonnx::DType::Float32, {2, 3, 32, 32}, pixels);
    const tonnx::VerifyResult result = tonnx::verify(onnx_runtime, libtorch, model, {.inputs = {{"image", image}}});
    std::cout << result.text << "\n";
    return result ? 0 : 3;
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
}
