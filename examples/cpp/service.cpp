// service.cpp - simplifies models in memory, as a service does: service model.onnx... reads each, and answers with
// bytes.
#include <tonnx/tonnx.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

namespace {

struct Answer {
  std::vector<std::byte> model;
  std::string text;
};

/// One request. Models come from strangers: what one of them may use is limited, and its error is its own.
Answer answer(const std::vector<std::byte>& request) {
  try {
    tonnx::Model model = tonnx::Model::read(request, tonnx::Format::Onnx, {.limits = {{"memory", 1 << 30}}});
    const tonnx::Report report = model.simplify();
    std::string text = std::to_string(report.nodes_before()) + " nodes became " + std::to_string(report.nodes_after());
    return {model.to_bytes(tonnx::Format::Onnx), std::move(text)};
  } catch (const tonnx::Error& e) {
    return {{}, std::string("refused: ") + e.what()};
  }
}

std::vector<std::byte> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Answer> answers(static_cast<size_t>(argc - 1));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < answers.size(); ++i)
    threads.emplace_back([&answers, argv, i] { answers[i] = answer(read_file(argv[i + 1])); });
  for (std::thread& thread : threads) thread.join();
  for (const Answer& each : answers) std::cout << each.text << ", " << each.model.size() << " bytes\n";
  return 0;
}
