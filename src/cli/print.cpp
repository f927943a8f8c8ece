// print.cpp - tonnx print: the graph as text.
#include <tonnx/tools.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/parse.h"

namespace tonnx::cli {

void add_print(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand(
      "print", "Print the graph as text, one line a node; or the names, types and shapes of weights");
  auto source = std::make_shared<std::string>();
  auto options = std::make_shared<PrintOptions>();
  command->add_option("source", *source, "model.onnx, model.pt2 or model.pt; weights.pth or weights.safetensors")
      ->required();
  command
      ->add_option("--max-elements", options->max_elements,
                   "how many elements a constant may have to be printed with its values")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  options->notes = false;
  command->add_flag("--notes", options->notes, "with the documentation and the metadata of nodes");
  auto inputs = std::make_shared<ReadOptions>();
  auto shapes = std::make_shared<std::vector<std::string>>(), types = std::make_shared<std::vector<std::string>>();
  for (const auto& [name, into, help] :
       {std::tuple("--input-shape", shapes, "name:1,3,224,224 is the shape of an input of a .pt"),
        std::tuple("--input-type", types, "name:int64 is its element type")}) {
    command->add_option(name, *into, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  auto limits = std::make_shared<std::vector<std::string>>();
  add_limit_option(command, *limits);
  command->callback([source, options, limits, inputs, shapes, types, &run] {
    run = [source, options, limits, inputs, shapes, types] {
      inputs->input_shapes = parse_shapes(*shapes);
      inputs->input_types = parse_types(*types);
      const LimitScope scope(parse_limits(*limits));
      if (find_format(*source) == Format::Pth || find_format(*source) == Format::SafeTensors) {
        const std::string list = print_weights(*source);
        fmt::print("{}", list);
        return;
      }
      const Format format = find_format(*source).value_or(Format::Onnx);
      require_content(*source, format);
      const bool is_script = format == Format::TorchScript, is_program = format == Format::TorchExport;
      const Model model =
          is_script ? Model::read(*source, format, *inputs) : Model::read(*source, is_program ? format : Format::Onnx);
      const std::string text = model.text(*options);
      fmt::print("{}", text);
    };
  });
}

}  // namespace tonnx::cli
