// check.cpp - tonnx check: what keeps a model from being converted; nothing else runs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/error.h"
#include "cli/parse.h"

namespace tonnx::cli {
namespace {

struct CheckArguments {
  std::string source;
  std::string to = "py";
  int64_t opset = 0;
  std::vector<std::string> limits, input_shapes, input_types;
};

void check(const CheckArguments& a) {
  const LimitScope scope(parse_limits(a.limits));
  while_doing("checking " + a.source, [&] {
    WriteOptions options;
    if (a.opset != 0) options.opset = a.opset;
    ReadOptions inputs;
    inputs.input_shapes = parse_shapes(a.input_shapes);
    inputs.input_types = parse_types(a.input_types);
    const Format source = require_route(a.source, "model." + a.to, {.read = inputs, .write = options});
    const Model model = Model::read(a.source, source, inputs);
    const Model::Counts counts = model.require_supported(*find_format("model." + a.to), options);
    fmt::print("{}: all {} nodes ({} operators) can be converted\n", shown(a.source), counts.nodes, counts.operators);
  });
}

}  // namespace

void add_check(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("check", "List every operator that cannot be converted, with its nodes, and convert nothing");
  auto a = std::make_shared<CheckArguments>();
  command->add_option("source", a->source, "model.onnx, model.pt2, or model.pt (TorchScript)")->required();
  command->add_option("--to", a->to, "py, pt2, pt or onnx; for a .pt2 py, pt or onnx")
      ->capture_default_str()
      ->check(CLI::IsMember({"py", "pt2", "pt", "onnx"}));
  command->add_option("--opset", a->opset, "with --to onnx: the opset that is asked for (1 to 28)")
      ->check(CLI::Range(1, 28));
  for (const auto& [name, into, help] :
       {std::tuple("--input-shape", &a->input_shapes, "name:1,3,224,224 is the shape of an input of a .pt"),
        std::tuple("--input-type", &a->input_types, "name:int64 is its element type")}) {
    command->add_option(name, *into, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  add_limit_option(command, a->limits);
  command->callback([a, &run] { run = [a] { check(*a); }; });
}

}  // namespace tonnx::cli
