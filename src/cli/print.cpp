// print.cpp - tonnx print: the graph as text.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "formats/onnx/onnx.h"
#include "ir/text.h"

namespace tonnx::cli {

void add_print(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("print", "Print the graph as text, one line a node");
  auto source = std::make_shared<std::string>();
  command->add_option("source", *source, "model.onnx")->required();
  command->callback([source, &run] {
    run = [source] {
      const std::string text = print(read_onnx(*source));
      std::fwrite(text.data(), 1, text.size(), stdout);
    };
  });
}

}  // namespace tonnx::cli
