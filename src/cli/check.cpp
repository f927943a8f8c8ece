// check.cpp - tonnx check: what keeps a model from being converted; nothing else runs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <set>

#include "base/error.h"
#include "cli/commands.h"
#include "convert/opset.h"
#include "convert/pipeline.h"
#include "formats/onnx/onnx.h"

namespace tonnx::cli {
namespace {

struct Arguments {
  std::string source;
  std::string to = "py";
  int64_t opset = 0;
};

void count_nodes(const Graph& graph, size_t& count, std::set<std::string>& ops) {
  for (const Node& node : graph) {
    ++count;
    ops.insert(label_of(node));
    for (const GraphPtr& subgraph : subgraphs_of(node)) count_nodes(*subgraph, count, ops);
  }
}

void check(const Arguments& a) {
  in_context([&] { return "checking " + a.source; },
             [&] {
               Model model = read_onnx(a.source);
               if (a.to == "onnx") {
                 if (a.opset != 0) change_opset(model, a.opset);
               } else {
                 const std::vector<UnsupportedOp> unsupported = find_unsupported(model);
                 if (!unsupported.empty()) {
                   size_t nodes = 0;
                   for (const UnsupportedOp& op : unsupported) nodes += op.nodes.size();
                   constexpr size_t kAll = size_t{1} << 20;
                   throw Error(ErrorKind::Unsupported,
                               fmt::format("{} node{} of {} operator{} cannot be converted:{}", nodes,
                                           nodes == 1 ? "" : "s", unsupported.size(),
                                           unsupported.size() == 1 ? "" : "s", describe(unsupported, kAll)));
                 }
               }
               size_t count = 0;
               std::set<std::string> ops;
               count_nodes(*model.graph, count, ops);
               fmt::print("{}: all {} nodes ({} operators) can be converted\n", a.source, count, ops.size());
             });
}

}  // namespace

void add_check(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("check", "List every operator that cannot be converted, with its nodes, and convert nothing");
  auto a = std::make_shared<Arguments>();
  command->add_option("source", a->source, "model.onnx")->required();
  command->add_option("--to", a->to, "py, pt2 or onnx")
      ->capture_default_str()
      ->check(CLI::IsMember({"py", "pt2", "onnx"}));
  command->add_option("--opset", a->opset, "with --to onnx: the opset that is asked for (1 to 28)")
      ->check(CLI::Range(1, 28));
  command->callback([a, &run] { run = [a] { check(*a); }; });
}

}  // namespace tonnx::cli
