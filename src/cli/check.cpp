// check.cpp - tonnx check: what keeps a model from being converted; nothing else runs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "convert/opset.h"
#include "convert/pipeline.h"
#include "convert/raising.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/pt2.h"

namespace tonnx::cli {
namespace {

struct CheckArguments {
  std::string source;
  std::string to = "py";
  int64_t opset = 0;
  std::vector<std::string> limits;
};

void count_nodes(const Graph& graph, size_t& count, std::set<std::string>& ops) {
  for (const Node& node : graph) {
    ++count;
    ops.insert(label_of(node));
    for (const GraphPtr& subgraph : subgraphs_of(node)) count_nodes(*subgraph, count, ops);
  }
}

[[noreturn]] void fail_check(size_t nodes, size_t operators, const std::string& list) {
  throw Error(ErrorKind::Unsupported, fmt::format("{} node{} of {} operator{} cannot be converted:{}", nodes,
                                                  nodes == 1 ? "" : "s", operators, operators == 1 ? "" : "s", list));
}

/// A program of PyTorch, on its way to ONNX or to Python.
void check_program(const CheckArguments& a) {
  Program program = read_pt2(a.source);
  make_functional(program);
  size_t count = 0;
  std::set<std::string> ops;
  count_nodes(*program.model.graph, count, ops);
  if (a.to == "py" || a.to == "pt") {
    ready_for_python(program);
  } else {
    const std::vector<UnsupportedAten> unsupported = find_unsupported_aten(*program.model.graph);
    size_t nodes = 0;
    for (const UnsupportedAten& op : unsupported) nodes += op.paths.size();
    if (nodes > 0) fail_check(nodes, unsupported.size(), describe(unsupported));
    ExportOptions options;
    if (a.opset != 0) options.raising.opset = a.opset;
    onnx_of(program, options);
  }
  fmt::print("{}: all {} nodes ({} operators) can be converted\n", shown(a.source), count, ops.size());
}

void check(const CheckArguments& a) {
  const BudgetScope scope(parse_limits(a.limits));
  in_context([&] { return "checking " + a.source; },
             [&] {
               ConvertOptions options;
               if (a.opset != 0) options.opset = a.opset;
               if (route(a.source, "model." + a.to, options).source == Format::Pt2) return check_program(a);
               Model model = read_onnx(a.source);
               if (a.to == "onnx") {
                 if (a.opset != 0) change_opset(model, a.opset);
               } else {
                 const std::vector<UnsupportedOp> unsupported = find_unsupported(model);
                 if (!unsupported.empty()) {
                   size_t nodes = 0;
                   for (const UnsupportedOp& op : unsupported) nodes += op.nodes.size();
                   constexpr size_t kAll = size_t{1} << 20;
                   fail_check(nodes, unsupported.size(), describe(unsupported, kAll));
                 }
               }
               size_t count = 0;
               std::set<std::string> ops;
               count_nodes(*model.graph, count, ops);
               fmt::print("{}: all {} nodes ({} operators) can be converted\n", shown(a.source), count, ops.size());
             });
}

}  // namespace

void add_check(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("check", "List every operator that cannot be converted, with its nodes, and convert nothing");
  auto a = std::make_shared<CheckArguments>();
  command->add_option("source", a->source, "model.onnx or model.pt2")->required();
  command->add_option("--to", a->to, "py, pt2, pt or onnx; for a .pt2 py, pt or onnx")
      ->capture_default_str()
      ->check(CLI::IsMember({"py", "pt2", "pt", "onnx"}));
  command->add_option("--opset", a->opset, "with --to onnx: the opset that is asked for (1 to 28)")
      ->check(CLI::Range(1, 28));
  add_limit_option(command, a->limits);
  command->callback([a, &run] { run = [a] { check(*a); }; });
}

}  // namespace tonnx::cli
