// simplify.cpp - tonnx simplify and tonnx infer: a model of ONNX made simpler, or with the types of all values.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/error.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/terminal.h"

namespace tonnx::cli {
namespace {

struct SimplifyArguments {
  std::string source, target, report, fold_limit = "1MB";
  JudgeOptions judge;
  std::vector<std::string> fixed_shapes, input_shapes, skip, only, enable, unused_outputs, skip_optimization, limits;
  int64_t opset = 0;
  bool skips_all = false, external_data = false, no_external_data = false, verifies_passes = false,
       skips_fusing_bn = false, skips_folding = false, skips_shapes = false, is_quiet = false, lists_passes = false,
       as_markdown = false, keeps_sizes_open = false;
};

uint64_t size_of(const std::string& path) {
  std::error_code missing;
  const uint64_t beside = std::filesystem::file_size(path + ".data", missing);
  return std::filesystem::file_size(path) + (missing ? 0 : beside);
}

constexpr const char* kOnePass = R"(
## One pass alone

`tonnx opt` runs passes that it is told, those of the way to Python too, and prints the graph that they leave:

```sh
tonnx opt --list
tonnx opt --passes fold_constants,eliminate_dead_code model.onnx
tonnx opt --passes recognise_linear,recognise_parts --print-after model.onnx
tonnx opt --passes merge_casts model.onnx graph.txt
tonnx opt --passes share_nodes graph.txt
```

Each runs once, in the order in which it is named, after an inference of all types; to run one twice, name it twice.
`simplify` runs its passes in rounds until nothing changes. A model is an `.onnx`, a `.pt2`, a `.pt`, or a `.txt` in
[the text form](ir.md#the-text-form), of ONNX or of aten. A pass of aten makes code of a model of ONNX or of a program
first, as it is before any pass; text of aten is taken as such code. With a second file nothing is printed: the result
goes there, as text with all values where its name ends in `.txt`. `--print-after` prints the graph after each pass that changed it,
instead of once at the end.)";

void list_passes(bool as_markdown) {
  if (as_markdown) {
    std::puts(
        "# Passes of tonnx simplify\n\nMade by `make docs`; a test fails when it is stale. In the order in which they "
        "run.\n\n| pass | what it does | runs |\n|---|---|---|");
  }
  for (const PassInfo& pass : simplify_passes()) {
    const bool is_default = pass.is_default;
    if (as_markdown)
      fmt::print("| `{}` | {} | {} |\n", pass.name, pass.sentence, is_default ? "always" : "on request");
    else
      fmt::print("{:<36}{}{}\n", pass.name, pass.sentence, is_default ? "" : " (on request)");
  }
  if (as_markdown) std::puts(kOnePass);
}

// Passes that options of other simplifiers are about.
constexpr const char* kFold = "fold_constants";
constexpr const char* kInlineIf = "inline_if";
constexpr const char* kDeadCode = "eliminate_dead_code";
constexpr const char* kFuseBn = "fuse_bn";

SimplifyOptions simplify_options_of(const SimplifyArguments& a, const Model& model) {
  SimplifyOptions passes;
  passes.input_shapes = parse_shapes(a.fixed_shapes, &model);
  if (!a.keeps_sizes_open) add_missing(passes.input_shapes, parse_shapes(a.input_shapes, &model));
  passes.skip = a.skip;
  passes.skip.insert(passes.skip.end(), a.skip_optimization.begin(), a.skip_optimization.end());
  if (a.skips_all) {
    passes.only = {kFold, kInlineIf, kDeadCode};
  }
  if (a.skips_fusing_bn) passes.skip.emplace_back(kFuseBn);
  if (a.skips_folding) passes.skip.emplace_back(kFold);
  if (!a.only.empty()) passes.only = a.only;
  passes.enable = a.enable;
  passes.unused_outputs = a.unused_outputs;
  passes.fold_limit = parse_bytes(a.fold_limit);
  passes.infers_shapes = !a.skips_shapes;
  if (a.opset != 0) passes.opset = a.opset;
  passes.verifies_passes = a.verifies_passes;
  return passes;
}

/// What the judge is told: shapes with the names of their inputs.
JudgeOptions judge_options_of(const SimplifyArguments& a, const Model& model) {
  InputShapes shapes = parse_shapes(a.judge.shapes, &model);
  if (a.keeps_sizes_open) add_missing(shapes, parse_shapes(a.input_shapes, &model));
  JudgeOptions options = a.judge;
  options.times = std::max<int64_t>(options.times, 1);
  options.shapes.clear();
  for (const auto& [name, shape] : shapes) options.shapes.push_back(fmt::format("{}:{}", name, fmt::join(shape, ",")));
  return options;
}

void simplify_one(const SimplifyArguments& a, const JudgeMaker& make_judge) {
  if (a.lists_passes) return list_passes(a.as_markdown);
  require(!a.source.empty() && !a.target.empty(),
          "simplify needs a source and a target: tonnx simplify model.onnx simple.onnx");
  const bool is_number = std::all_of(a.target.begin(), a.target.end(), [](char c) { return c >= '0' && c <= '9'; });
  require(!is_number, "'{0}' is no file for the simpler model: tonnx simplify {1} simple.onnx {0} makes {0} checks",
          a.target, a.source);
  const Written written(a.is_quiet);
  const LimitScope scope(parse_limits(a.limits));
  while_doing("simplifying " + a.source, [&] {
    const auto read = std::make_shared<Model>(Model::read(a.source, Format::Onnx));
    Model& model = *read;
    SimplifyOptions options = simplify_options_of(a, model);
    if (a.judge.times > 0 || a.verifies_passes) {
      if (!make_judge) fail_unsupported("comparing outputs needs ONNX Runtime: run `python -m tonnx simplify` instead");
      options.compare = make_judge(judge_options_of(a, model));
    }
    const Report report = model.simplify(options);
    if (!report.is_same()) {
      throw Differs(
          fmt::format("the outputs of the simplified model differ: {}\n  --verify-passes finds the "
                      "pass that is to blame, and leaves it out",
                      report.difference()));
    }
    WriteOptions writing;
    writing.format = Format::Onnx;
    if (a.external_data) writing.external_data = true;
    if (a.no_external_data) writing.external_data = false;
    model.write(a.target, writing);
    const uint64_t bytes = size_of(a.target);
    if (!a.report.empty()) write_text(a.report, report.json(bytes));
    if (!report.not_judged().empty())
      std::fprintf(stderr, "warning: not judged: %s\n", shown(report.not_judged()).c_str());
    for (const std::string& pass : report.taken_back())
      std::fprintf(stderr, "warning: the outputs changed in pass %s, which was left out\n", shown(pass).c_str());
    if (!a.is_quiet) fmt::print("{}", report.table(bytes));
    if (!a.is_quiet && a.judge.times > 0 && report.not_judged().empty() && has_reader())
      fmt::print("{} check{} passed: the outputs are the same\n", a.judge.times, a.judge.times == 1 ? "" : "s");
    written.say(a.target);
    leave(read);
  });
}

/// Options of other simplifiers that mean nothing here, so that their command lines work.
void accept_for_others(CLI::App* command) {
  for (const char* name : {"--enable-fuse-bn", "--include-subgraph"})
    command
        ->add_flag_function(
            name, [](int64_t) {}, "accepted, and without effect: it is always so")
        ->group("");
}

CLI::Option* add_list(CLI::App* command, const std::string& names, std::vector<std::string>& into,
                      const std::string& text) {
  return command->add_option(names, into, text)->expected(1, -1);
}

}  // namespace

void add_simplify(CLI::App& app, Run& run, const JudgeMaker& make_judge) {
  CLI::App* command = app.add_subcommand("simplify", "Make a model of ONNX simpler, and say what was done");
  auto a = std::make_shared<SimplifyArguments>();
  command->add_option("source", a->source, "model.onnx");
  command->add_option("target", a->target, "the simpler model.onnx");
  command->add_option("check_n", a->judge.times, "compare the outputs on so many random inputs (needs ONNX Runtime)")
      ->check(CLI::NonNegativeNumber);
  add_list(command, "--overwrite-input-shape", a->fixed_shapes,
           "name:1,3,224,224 fixes the shape of an input; ? leaves a size as it is; without a name where there is one "
           "input");
  add_list(command, "--test-input-shape", a->judge.shapes, "name:1,3,224,224: shapes of the inputs for check_n only");
  add_list(command, "--input-shape", a->input_shapes,
           "the same as --overwrite-input-shape, or with --dynamic-input-shape as --test-input-shape");
  command->add_flag("--dynamic-input-shape", a->keeps_sizes_open,
                    "--input-shape is for check_n only, and fixes nothing");
  add_list(command, "--skip,--skip-optimizer", a->skip, "passes that are left out");
  CLI::Option* skip_optimization =
      command->add_option("--skip-optimization", a->skip_optimization, "the same; without a name, all")
          ->expected(0, -1)
          ->group("");
  add_list(command, "--only", a->only, "the only passes that run");
  add_list(command, "--enable,--enable-optimization", a->enable, "passes that run on request only");
  command->add_flag("--list-passes", a->lists_passes, "say what passes there are, and what each one does");
  command->add_flag("--markdown", a->as_markdown, "write that list as a page of the documentation")->group("");
  command
      ->add_option("--no-fold-over,--no-large-tensor", a->fold_limit,
                   "no constant that is larger by so much than what it is computed from")
      ->capture_default_str();
  add_list(command, "--unused-output", a->unused_outputs, "outputs that are dropped, with all that only they need");
  command->add_option("--input-data", a->judge.data, "data.npz: the inputs for check_n");
  command->add_option("--custom-lib", a->judge.library,
                      "ops.so: a library of operators, which ONNX Runtime needs to run the model for check_n");
  command->add_option("--check-rtol", a->judge.relative, "relative tolerance of check_n")->capture_default_str();
  command->add_option("--check-atol", a->judge.absolute, "absolute tolerance of check_n")->capture_default_str();
  command->add_option("--opset", a->opset, "opset of the result (1 to 28)")->check(CLI::Range(1, 28));
  CLI::Option* external = command->add_flag("--external-data,--save-as-external-data", a->external_data,
                                            "write the weights to a file of their own");
  command->add_flag("--no-external-data", a->no_external_data, "keep the weights in the ONNX file")->excludes(external);
  command->add_option("--report", a->report, "report.json: what was done, for programs");
  command->add_flag("--verify-passes", a->verifies_passes,
                    "compare the outputs after every pass, and leave out one that changes them (needs ONNX Runtime)");
  command->add_flag("--skip-fuse-bn", a->skips_fusing_bn, "leave normalisations where they are");
  command->add_flag("--skip-constant-folding", a->skips_folding, "compute nothing");
  command->add_flag("--skip-shape-inference", a->skips_shapes, "do not write the types of values between the nodes");
  command->add_flag("-q,--quiet", a->is_quiet, "print no table");
  add_limit_option(command, a->limits);
  accept_for_others(command);
  command->callback([a, &run, make_judge, skip_optimization] {
    std::erase(a->skip_optimization, "");
    a->skips_all = skip_optimization->count() > 0 && a->skip_optimization.empty();
    run = [a, make_judge] { simplify_one(*a, make_judge); };
  });
}

void add_infer(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("infer", "Find out the types and shapes of all values of a model of ONNX");
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  auto shapes = std::make_shared<std::vector<std::string>>(), limits = std::make_shared<std::vector<std::string>>();
  command->add_option("source", paths->first, "model.onnx")->required();
  command->add_option("target", paths->second, "the same model with the types of all its values")->required();
  add_list(command, "--overwrite-input-shape,--input-shape", *shapes,
           "name:1,3,224,224 fixes the shape of an input; ? leaves a size as it is");
  auto is_quiet = std::make_shared<bool>(false);
  command->add_flag("-q,--quiet", *is_quiet, "say nothing on a terminal either");
  add_limit_option(command, *limits);
  command->callback([paths, shapes, limits, is_quiet, &run] {
    run = [paths, shapes, limits, is_quiet] {
      const LimitScope scope(parse_limits(*limits));
      while_doing("inferring " + paths->first, [&] {
        const Written written(*is_quiet);
        Model model = Model::read(paths->first, Format::Onnx);
        model.infer_shapes(parse_shapes(*shapes, &model));
        model.write(paths->second, {.format = Format::Onnx});
        written.say(paths->second);
      });
    };
  });
}

}  // namespace tonnx::cli
