// opt.cpp - tonnx opt: passes one by one, for who writes or looks for one.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "cli/commands.h"
#include "cli/error.h"
#include "cli/parse.h"
#include "cli/terminal.h"

namespace tonnx::cli {
namespace {

struct OptArguments {
  std::string source, target;
  std::vector<std::string> passes, limits;
  bool lists = false, prints_after = false, is_quiet = false;
  PrintOptions print;
};

void list_passes() {
  for (const PassRow& pass : all_passes()) {
    fmt::print("{:<36}{}{} ({}, {})\n", pass.name, pass.sentence, pass.is_default ? "" : "; on request", pass.dialect,
               pass.phase);
  }
}

/// Before anything is read.
void require_passes(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const PassRow& pass : all_passes()) known.push_back(pass.name);
  for (const std::string& name : names) {
    require(std::find(known.begin(), known.end(), name) != known.end(), "there is no pass '{}'; there are: {}", name,
            nearest_list(name, known));
  }
}

bool is_text(const std::string& path) { return path.ends_with(".txt"); }

Model read_any(const std::string& path) {
  if (is_text(path)) return Model::parse(read_text(path));
  return Model::read(path);
}

void optimise(const OptArguments& a) {
  if (a.lists) return list_passes();
  require(!a.source.empty(), "opt needs a model: tonnx opt --passes fold_constants,merge_casts model.onnx");
  require(!a.passes.empty(), "opt needs the names of passes: tonnx opt --passes fold_constants,merge_casts {}",
          a.source);
  require_passes(a.passes);
  const LimitScope scope(parse_limits(a.limits));
  while_doing("optimising " + a.source, [&] {
    const Written written(a.is_quiet);
    Model model = read_any(a.source);
    const bool prints_end = a.target.empty();
    for (const std::string& pass : a.passes) {
      const bool is_changed = run_pass(model, pass);
      if (is_changed && a.prints_after) fmt::print("# after {}\n{}\n", pass, model.text(a.print));
    }
    if (prints_end && !a.prints_after) fmt::print("{}", model.text(a.print));
    if (prints_end) return;
    PrintOptions whole = a.print;
    whole.max_elements = std::numeric_limits<int64_t>::max();
    if (is_text(a.target))
      write_text(a.target, model.text(whole));
    else
      model.write(a.target);
    written.say(a.target);
  });
}

}  // namespace

void add_opt(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("opt", "Run passes one by one, and print the graph: for who writes passes, or looks for one");
  auto a = std::make_shared<OptArguments>();
  command->add_option("source", a->source, "model.onnx, model.pt2, model.pt, or graph.txt, as tonnx print shows it");
  command->add_option("target", a->target, "where the result goes: as the graph is then, or .txt; not given: printed");
  command->add_option("--passes", a->passes, "their names, in the order in which they run")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--print-after", a->prints_after, "print the graph after each pass that changed something");
  command->add_flag("--list", a->lists, "say what passes there are, what each one does, on what, and where it runs");
  command
      ->add_option("--max-elements", a->print.max_elements,
                   "how many elements a constant may have to be printed with its values")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  a->print.notes = false;
  command->add_flag("--notes", a->print.notes, "with the documentation and the metadata of nodes");
  command->add_flag("-q,--quiet", a->is_quiet, "say nothing on a terminal either");
  add_limit_option(command, a->limits);
  command->callback([a, &run] { run = [a] { optimise(*a); }; });
}

}  // namespace tonnx::cli
