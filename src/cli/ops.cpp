// ops.cpp - tonnx ops: what is supported, per operator and opset; also the source of docs/operators.md.
#include <fmt/format.h>
#include <tonnx/tools.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "cli/commands.h"

namespace tonnx::cli {
namespace {

struct Row {
  std::string domain, name, family, versions, note;
  bool lowers;
};

std::vector<Row> rows() {
  std::vector<Row> result;
  for (const OnnxOperatorInfo& op : onnx_operators()) {
    result.push_back({op.domain.empty() ? "ai.onnx" : op.domain, op.name, op.family,
                      fmt::format("{}", fmt::join(op.versions, ", ")), op.note, op.is_supported});
  }
  std::sort(result.begin(), result.end(),
            [](const Row& a, const Row& b) { return std::pair(a.domain, a.name) < std::pair(b.domain, b.name); });
  return result;
}

void print_markdown() {
  fmt::print("# Operators\n\nMade by `make docs` from the operator tables; a test fails when it is stale.\n\n");
  size_t supported = 0;
  const std::vector<Row> all = rows();
  for (const Row& row : all) supported += row.lowers;
  fmt::print("{} ONNX operators go to PyTorch, from every version in the list up to opset {}.\n\n", supported,
             newest_opset());
  fmt::print("| domain | operator | versions | to PyTorch | family | notes |\n|---|---|---|---|---|---|\n");
  for (const Row& row : all) {
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", row.domain, row.name, row.versions, row.lowers ? "yes" : "no",
               row.family, row.note);
  }
  fmt::print(
      "\n## From PyTorch\n\nThe aten operators that are known: which of them go to ONNX, and how generated code spells "
      "them. In-place and out= forms, and other names of the same operator, are brought to these first.\n\n"
      "| aten | to ONNX | Python | nn module | notes |\n|---|---|---|---|---|\n");
  std::map<std::string, std::string> aten;
  for (const AtenOperatorInfo& op : aten_operators()) {
    const std::string spelling = op.python.empty() ? "an expression" : fmt::format("`{}`", op.python);
    aten[op.name] = fmt::format("| {} | {} | {} | {} | {} |\n", op.name, op.is_supported ? "yes" : "no",
                                op.python == "|" ? "`\\|`" : spelling, op.is_module ? "yes" : "", op.note);
  }
  for (const auto& [name, line] : aten) fmt::print("{}", line);
}

void print_plain() {
  for (const Row& row : rows()) {
    fmt::print("{:<24} {:<28} {}{}{}\n", row.domain, row.name, row.versions, row.lowers ? "" : "  (not to PyTorch yet)",
               row.note.empty() ? "" : "  " + row.note);
  }
}

}  // namespace

void add_ops(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("ops", "List the operators that are supported, with their versions");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "as docs/operators.md has it");
  command->callback([markdown, &run] { run = [markdown] { *markdown ? print_markdown() : print_plain(); }; });
}

}  // namespace tonnx::cli
