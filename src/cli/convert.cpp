// convert.cpp - tonnx convert: one file into another.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/error.h"
#include "cli/parse.h"
#include "cli/terminal.h"

namespace tonnx::cli {
namespace {

struct ConvertArguments {
  std::string source, target, list;
  int64_t opset = 0;
  std::vector<std::string> input_shapes;
  std::vector<std::string> input_types;
  std::vector<std::string> dynamic;
  std::vector<std::string> allow_ops;
  std::vector<std::string> limits;
  std::string weights, part, simplified;
  bool external_data = false;
  bool no_external_data = false;
  bool no_source_lines = false;
  bool flat = false;
  bool is_quiet = false;
  bool is_unchecked = false;
};

ConvertOptions options_of(const ConvertArguments& a, const JudgeMaker& make_judge) {
  ConvertOptions options;
  ReadOptions& read = options.read;
  WriteOptions& write = options.write;
  if (a.opset != 0) write.opset = a.opset;
  read.input_shapes = parse_shapes(a.input_shapes);
  read.input_types = parse_types(a.input_types);
  for (const std::string& text : a.dynamic) {
    const std::vector<DynamicDim> dims = parse_dynamic(text);
    write.dynamic.insert(write.dynamic.end(), dims.begin(), dims.end());
  }
  if (make_judge && !a.is_unchecked && !a.dynamic.empty()) write.compare = make_judge({});
  write.on_warning = [](const std::string& text) { std::fprintf(stderr, "warning: %s\n", shown(text).c_str()); };
  require_operator_names(a.allow_ops);
  write.allow_ops = a.allow_ops;
  read.limits = parse_limits(a.limits);
  if (a.external_data) write.external_data = true;
  if (a.no_external_data) write.external_data = false;
  if (a.no_source_lines) write.source_lines = false;
  write.flat = a.flat;
  read.weights = a.weights;
  if (!a.part.empty()) read.part = a.part;
  return options;
}

/// `source<TAB>target` on each line. A failure is written to TARGET.err, and the others are still converted; the first
/// one's kind is what the program ends with.
void convert_list(const ConvertArguments& a, const JudgeMaker& make_judge) {
  const ConvertOptions options = options_of(a, make_judge);
  const std::string text = read_text(a.list);
  size_t count = 0, failed = 0, line_number = 0;
  std::optional<Error::Kind> worst;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    require(tab != std::string_view::npos && tab > 0 && tab + 1 < line.size(),
            "line {} of '{}' is not a source, a tab and a target", line_number, a.list);
    const std::string source(line.substr(0, tab)), target(line.substr(tab + 1)), report = target + ".err";
    ++count;
    std::remove(report.c_str());
    const auto note_failure = [&](Error::Kind kind, const char* text) {
      ++failed;
      if (!worst) worst = kind;
      write_text(report, std::string(text) + "\n");
    };
    try {
      tonnx::convert(source, target, options);
    } catch (const Error& e) {
      note_failure(e.kind(), e.what());
    } catch (const std::exception& e) {  // the others are still converted
      note_failure(Error::Kind::Internal, e.what());
    }
  }
  if (failed > 0)
    throw Error(*worst, fmt::format("{} of {} conversions failed; each has its reason in TARGET.err", failed, count));
}

/// Writes the source made simpler, at the shapes that are given, and leaves the rest of the options to the conversion.
void simplify_first(const ConvertArguments& a, ConvertOptions& options) {
  while_doing("simplifying " + a.source, [&] {
    const LimitScope scope(options.read.limits);
    Model model = Model::read(a.source, Format::Onnx);
    model.simplify({.input_shapes = parse_shapes(a.input_shapes, &model)});
    model.write(a.simplified, {.format = Format::Onnx});
    options.read.input_shapes.clear();
  });
}

bool is_weights_file(const std::string& path) {
  const auto format = find_format(path);
  return format == Format::Pth || format == Format::SafeTensors;
}

void convert(const ConvertArguments& a, const JudgeMaker& make_judge) {
  if (!a.list.empty()) {
    require(a.source.empty(), "--list names the files; none is given beside it");
    return convert_list(a, make_judge);
  }
  require(!a.source.empty() && !a.target.empty(),
          "convert needs a source and a target: tonnx convert model.onnx model.py; or --list with many");
  ConvertOptions options = options_of(a, make_judge);
  WeightsBar bar;
  options.write.on_bytes = [&](uint64_t done, uint64_t total) { bar.show(done, total); };
  const Written written(a.is_quiet);
  std::string source = a.source;
  if (!a.simplified.empty()) {
    simplify_first(a, options);
    source = a.simplified;
    written.say(source);
  }
  tonnx::convert(source, a.target, options);
  written.say(a.target);
  if (!a.is_quiet && is_weights_file(a.target) && !is_weights_file(a.source) && has_reader())
    fmt::print("note: that is the weights alone; tonnx convert {} {} writes the code that they belong to\n",
               shown(source), shown(std::filesystem::path(a.target).replace_extension(".py").string()));
}

}  // namespace

void add_convert(CLI::App& app, Run& run, const JudgeMaker& make_judge) {
  CLI::App* command =
      app.add_subcommand("convert", "Convert a model; the endings of the two names say from what and to what");
  auto a = std::make_shared<ConvertArguments>();
  const auto name_of_other = [&](const char* name, std::string& into, const char* help) {
    command->add_option(name, into, help)->group("Of onnx2nn");
  };
  command->add_option("source", a->source,
                      "model.onnx, model.pt2 or model.pt (TorchScript); weights.pth or weights.safetensors");
  command->add_option("target", a->target,
                      "model.py (its weights go to model.safetensors), model.pt2, model.pt (TorchScript) or "
                      "model.onnx; model.safetensors or model.pth: "
                      "the weights alone, under the names that the .py has");
  command->add_option(
      "--list", a->list,
      "a file of many conversions, `source<TAB>target` on each line; a failure is written to TARGET.err");
  command->add_option("--opset", a->opset, "opset of the ONNX that is written (1 to 28)")->check(CLI::Range(1, 28));
  command
      ->add_option("--input-shape", a->input_shapes,
                   "name:1,3,224,224 fixes the shape of an input; ? leaves a size as it is")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--input-type", a->input_types,
                   "name:int64 is the element type of an input of a .pt; float32 where nothing is said")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--dynamic", a->dynamic,
                   "name:0=batch,2=height:1..64 makes sizes of an input open, in a range where one is given; auto: the "
                   "first size of "
                   "every input, as batch")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--allow-op", a->allow_ops,
                   "library::name of an operator in a .pt2 that tonnx does not know, and that the code may call")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--weights", a->weights,
                      "weights.pth or weights.safetensors, whose values take the place of the model's own, by name");
  command->add_option(
      "--part", a->part,
      "which dict of a checkpoint has the weights, as `tonnx print` names it: model; . is all of the file");
  add_limit_option(command, a->limits);
  CLI::Option* external = command->add_flag("--external-data", a->external_data,
                                            "write the weights of an ONNX file to a file of their own");
  command->add_flag("--no-external-data", a->no_external_data, "keep the weights in the ONNX file")->excludes(external);
  command->add_flag("--no-source-lines", a->no_source_lines,
                    "leave out of ONNX which line of a .pt2's model each node comes from");
  command->add_flag("--flat", a->flat, "write code as one class, without modules inside modules");
  command->add_flag("-q,--quiet", a->is_quiet, "say nothing on a terminal either");
  name_of_other("--onnx-path", a->source, "the source");
  name_of_other("--pytorch-path", a->target, "the target");
  name_of_other("--simplify-path", a->simplified,
                "simple.onnx: the source is made simpler first, written there, and converted from there");
  command->add_flag("--no-verify", a->is_unchecked, "do not run a model whose sizes were opened beside the original");
  command->callback([a, &run, make_judge] { run = [a, make_judge] { convert(*a, make_judge); }; });
}

}  // namespace tonnx::cli
