// writer.cpp - the whole Python file: docstring, imports, the class, and how it is loaded.
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/join.h"
#include "base/utf8.h"
#include "formats/python/classes/classes.h"
#include "formats/python/layout.h"
#include "formats/python/python.h"
#include "formats/python/rows.h"
#include "formats/python/statements/statements.h"
#include "modules/module_tree.h"
#include "modules/places.h"

namespace tonnx {
namespace python {
namespace {

constexpr std::string_view kWeights = "Weights";
constexpr std::string_view kInMemory = "its weights in memory";
constexpr std::string_view kLastImport = "\nfrom torch import nn\n";

std::string external_in_memory(size_t index) { return fmt::format("EXTERNAL[{}]", index); }

std::string human_count(int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.1f} G", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.1f} M", static_cast<double>(count) / 1e6);
  if (count >= 1'000) return fmt::format("{:.1f} k", static_cast<double>(count) / 1e3);
  return std::to_string(count);
}

/// Text for a docstring: valid, visible, and nothing that could end it.
std::string plain(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = visible_length(text);
    const bool is_plain = length > 0 && text[0] != '\\' && text[0] != '"';
    if (is_plain) {
      result += text.substr(0, length);
    } else {
      result += ' ';
    }
    text.remove_prefix(std::max<size_t>(utf8_length(text), 1));
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

std::string shorten(std::string text, size_t width) {
  return text.size() <= width ? text : std::string(cut_at_character(text, width - 3)) + "...";
}

void add_rows(std::string& text, std::string_view heading, const std::vector<Row>& all) {
  const std::vector<Row> rows = counted_together(all);
  size_t widest = 0;
  for (const Row& row : rows) widest = std::max(widest, std::min<size_t>(row.name.size(), 40));
  for (size_t i = 0; i < rows.size(); ++i) {
    text += shorten(fmt::format("{:<9}{:<{}}  {}", i == 0 ? heading : "", rows[i].name, widest, rows[i].about),
                    kLineWidth) +
            "\n";
  }
}

constexpr std::string_view kBy = " by tonnx from ";

/// The first line of the docstring, given what is behind the name of the model.
std::string title_line(std::string_view title, std::string_view behind) {
  const std::string text = shorten(plain(title), 64);
  return shorten(fmt::format("\"\"\"{}{}", text.empty() ? "Converted" : text + ", converted", behind), kLineWidth) +
         "\n";
}

std::string weights_line(const std::string& weights_file, const std::vector<StateTensor>& state) {
  int64_t parameters = 0;
  for (const StateTensor& tensor : state) parameters += tensor.trainable ? tensor.tensor->count() : 0;
  return fmt::format("{:<9}{}: {} tensor{}, {} parameter{}\n", kWeights, plain(weights_file), state.size(),
                     state.size() == 1 ? "" : "s", human_count(parameters), parameters == 1 ? "" : "s");
}

std::string docstring(const Graph& graph, const Model& origin, const PythonOptions& options,
                      const std::vector<StateTensor>& state, const Forward& forward) {
  std::string made_by = plain(origin.producer_name);
  if (!made_by.empty() && !origin.producer_version.empty()) made_by += " " + plain(origin.producer_version);
  const std::string from =
      origin.path.empty() ? "an ONNX model" : plain(origin.path.substr(origin.path.rfind('/') + 1));
  std::vector<std::string> notes;
  if (!origin.opsets.empty()) notes.push_back(fmt::format("opset {}", origin.opset("")));
  if (!made_by.empty()) notes.push_back("made by " + made_by);
  const std::string about = notes.empty() ? "" : fmt::format(" ({})", joined(notes, ", "));
  std::string text =
      title_line(options.title.empty() ? graph.name : options.title, fmt::format("{}{}{}.", kBy, from, about)) + "\n";
  std::vector<Row> inputs, outputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& input = *graph.inputs()[i];
    const bool renamed = input.name != forward.parameters[i];
    inputs.push_back({forward.parameters[i],
                      plain(text_of(input.type)) + (renamed ? fmt::format("  ({})", plain(input.name)) : "")});
  }
  for (const Value* output : origin.graph->outputs())
    outputs.push_back({plain(output->name), plain(text_of(output->type))});
  add_rows(text, "Inputs", inputs);
  add_rows(text, "Outputs", outputs);
  if (!state.empty()) text += weights_line(options.weights_file, state);
  return text + "\"\"\"\n";
}

std::string method_of(std::string_view head, const std::vector<Statement>& statements) {
  std::string text = lay_out(std::string(head), 4);
  for (const Statement& statement : statements)
    text += statement.text.empty() ? "\n" : lay_out(statement.text, 8 + 4 * static_cast<size_t>(statement.level));
  return text;
}

/// The one place of an `Encoder` is `encoder`: nobody has to read it.
bool says_its_name(const ClassText& text) {
  return std::equal(text.about.begin(), text.about.end(), text.name.begin(), text.name.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  });
}

std::string class_text(const ClassText& text) {
  const bool is_sequential = text.is_sequential || text.is_chain;
  std::string result = fmt::format("class {}(nn.{}):\n", text.name, is_sequential ? "Sequential" : "Module");
  if (!text.about.empty() && !says_its_name(text))
    result += fmt::format("    \"\"\"{}\"\"\"\n\n", shorten(plain(text.about), kLineWidth - 12));
  if (!text.members.empty()) {
    std::vector<Statement> lines;
    if (!text.is_sequential) lines.push_back({0, "super().__init__()"});
    lines.insert(lines.end(), text.members.begin(), text.members.end());
    const std::string parameters = text.parameters.empty() ? "" : ", " + joined(text.parameters);
    result += method_of(fmt::format("def __init__(self{}):", parameters), lines);
    if (text.has_forward) result += "\n";
  }
  const auto add = [&](std::string_view name, const Forward& code) {
    const std::string parameters = code.parameters.empty() ? "" : ", " + joined(code.parameters);
    result += method_of(fmt::format("def {}(self{}):", name, parameters), code.statements);
  };
  if (text.has_forward) add("forward", text.forward);
  for (const MethodText& method : text.others) {
    result += "\n";
    add(method.name, method.code);
  }
  return result;
}

/// Of the modules of the user's own, below those that all code has.
std::string import_lines(const PythonOptions& options) {
  std::set<std::string> imports;
  for (const ExternalModule& external : options.external) {
    if (!external.import_line.empty()) imports.insert(external.import_line + "\n");
  }
  std::string text = imports.empty() ? "" : "\n";
  for (const std::string& line : imports) text += line;
  return text;
}

/// The state dict, with the entries of the external modules.
std::vector<StateTensor> state_tensors(const ModuleTree& tree, const PythonOptions& options) {
  std::vector<StateTensor> state;
  for (StateEntry& entry : state_of(tree))
    state.push_back({std::move(entry.name), entry.value->constant, entry.transposed, entry.trainable});
  for (size_t i = 0; i < tree.external_names.size() && i < options.external.size(); ++i) {
    for (const StateTensor& tensor : options.external[i].state)
      state.push_back({tree.external_names[i] + "." + tensor.name, tensor.tensor, false, tensor.trainable});
  }
  return state;
}

constexpr std::string_view kLoadWeights = R"(
    @classmethod
    def load(cls, weights=Path(__file__).with_suffix(".safetensors"), device="cpu"):
        """The model with its weights, in eval mode."""
        from safetensors.torch import load_file

        with torch.device("meta"):
            model = cls()
        model.load_state_dict({name: x.to(device, copy=True) for name, x in load_file(weights).items()}, assign=True)
        return model.eval()
)";

constexpr std::string_view kLoadState =
    "        model.load_state_dict({name: x.to(device, copy=True) for name, x in load_file(weights).items()}, "
    "assign=True)\n";

/// `self.layers[0].head.weight`
std::string weight_of(const Submodule& module) {
  std::string text = "self";
  for (const std::string& part : path_of_name(module.name)) text += is_index(part) ? "[" + part + "]" : "." + part;
  return text + ".weight";
}

/// Weights that modules share, and how they are called in the module that is made first.
std::map<int, std::vector<const Submodule*>> ties_of(const ModuleTree& tree) {
  std::map<int, std::vector<const Submodule*>> ties;
  for (const Submodule& module : tree.submodules) {
    if (module.tied_to >= 0) ties[module.tied_to].push_back(&module);
  }
  return ties;
}

/// One line where it is short enough.
std::vector<Statement> tie_statements(const ModuleTree& tree) {
  std::vector<Statement> statements;
  for (const auto& [owner, modules] : ties_of(tree)) {
    const std::string own = weight_of(tree.submodules[static_cast<size_t>(owner)]);
    std::string all;
    for (const Submodule* module : modules) all += weight_of(*module) + " = ";
    if (all.size() + own.size() + 8 <= kLineWidth) {
      statements.push_back({0, all + own});
      continue;
    }
    for (const Submodule* module : modules) statements.push_back({0, weight_of(*module) + " = " + own});
  }
  return statements;
}

/// A parameter under all of its names: load_state_dict would make one for each.
std::string load_weights(const ModuleTree& tree) {
  std::string text(kLoadWeights);
  std::string ties;
  for (const auto& [owner, modules] : ties_of(tree)) {
    std::vector<std::string> names{tree.submodules[static_cast<size_t>(owner)].name};
    for (const Submodule* module : modules) names.push_back(module->name);
    for (std::string& name : names) name = fmt::format("\"{}.weight\"", name);
    ties += lay_out(fmt::format("tied = [{}]", joined(names)), 8);
    ties += lay_out("state |= dict.fromkeys(tied, nn.Parameter(state[tied[0]]))", 8);
  }
  if (ties.empty()) return text;
  const std::string state =
      "        state = {name: x.to(device, copy=True) for name, x in load_file(weights).items()}\n";
  return text.replace(text.find(kLoadState), kLoadState.size(),
                      state + ties + "        model.load_state_dict(state, assign=True)\n");
}

constexpr std::string_view kLoadNothing = R"(
    @classmethod
    def load(cls, device="cpu"):
        """The model, which has no weights, in eval mode."""
        return cls().to(device).eval()
)";

bool mentions(std::string_view body, std::string_view word) {
  for (size_t at = body.find(word); at != std::string_view::npos; at = body.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : body[at - 1];
    if (!std::isalnum(static_cast<unsigned char>(before)) && before != '_' && before != '.') return true;
  }
  return false;
}

/// The classes of modules that PyTorch does not have.
std::string class_sources(const ModuleTree& tree) {
  std::set<std::string_view> sources;
  for (const Submodule& module : tree.submodules) sources.insert(module.spec.source);
  std::string text;
  for (const std::string_view source : sources) text += source;
  return text;
}

}  // namespace
}  // namespace python

PythonModule write_python(const Graph& graph, const Model& origin, const PythonOptions& options) {
  using namespace python;
  ModuleTree tree = module_tree_of(graph, options.flat ? TreeNames::Flat : TreeNames::Nested);
  tree.words = find_words(graph);
  std::vector<StateTensor> state = state_tensors(tree, options);
  const std::shared_ptr<ModulePart> model = outline(graph, tree);
  std::vector<ClassText> classes = write_classes(*model, options.external);
  for (Statement& tie : tie_statements(tree)) classes.back().members.push_back(std::move(tie));
  const Forward& forward = classes.back().forward;

  std::string body = class_sources(tree);
  for (size_t i = 0; i < classes.size(); ++i) body += (i == 0 ? "" : "\n\n") + class_text(classes[i]);
  body += state.empty() ? std::string(kLoadNothing) : load_weights(tree);

  PythonModule result;
  result.source = docstring(graph, origin, options, state, forward) + "\n";
  const size_t before = result.source.size();
  if (mentions(body, "itertools.")) result.source += "import itertools\n";
  if (mentions(body, "math.")) result.source += "import math\n";
  if (mentions(body, "OrderedDict(")) result.source += "from collections import OrderedDict\n";
  if (mentions(body, "Path(")) result.source += "from pathlib import Path\n";
  if (result.source.size() > before) result.source += "\n";
  if (mentions(body, "torch.")) result.source += "import torch\n";
  if (mentions(body, "F.")) result.source += "import torch.nn.functional as F\n";
  // importing it is what makes its operators known to PyTorch
  if (mentions(body, "torch.ops.torchvision.")) result.source += "import torchvision  # noqa: F401\n";
  result.source += std::string(kLastImport.substr(1)) + import_lines(options) + "\n\n" + body;
  result.state = std::move(state);
  for (const auto& [owner, modules] : ties_of(tree)) {
    const std::string own = tree.submodules[static_cast<size_t>(owner)].name + ".weight";
    const auto at =
        std::find_if(result.state.begin(), result.state.end(), [&](const auto& x) { return x.name == own; });
    for (const Submodule* module : modules)
      result.tied.emplace_back(module->name + ".weight", static_cast<size_t>(at - result.state.begin()));
  }
  return result;
}

PythonOptions memory_options(const std::string& title, std::vector<std::vector<StateTensor>> external) {
  PythonOptions options;
  options.title = title;
  options.weights_file = python::kInMemory;
  for (size_t i = 0; i < external.size(); ++i)
    options.external.push_back({"", python::external_in_memory(i), std::move(external[i])});
  return options;
}

std::string source_for_file(std::string source, const PythonOptions& options, const std::vector<StateTensor>& state) {
  using namespace python;
  for (size_t i = 0; i < options.external.size(); ++i) {
    const size_t equals = source.find(fmt::format(" = {}\n", external_in_memory(i)));
    ensure(equals != std::string::npos, "code in memory without its external modules");
    const size_t line = source.rfind('\n', equals) + 1, name = source.find('.', line) + 1;
    const std::string text =
        lay_out(fmt::format("self.{} = {}", source.substr(name, equals - name), options.external[i].constructor), 8);
    source.replace(line, source.find('\n', equals) + 1 - line, text);
  }
  const size_t imports = source.find(kLastImport) + kLastImport.size();
  source.insert(imports, import_lines(options));
  const size_t weights = source.find(fmt::format("\n{:<9}{}:", kWeights, kInMemory)) + 1;
  if (weights > 0 && weights < imports)
    source.replace(weights, source.find('\n', weights) + 1 - weights, weights_line(options.weights_file, state));
  const size_t title_end = source.find(kBy), line_end = source.find('\n');
  ensure(title_end < line_end, "code in memory says what it was made of");
  source.replace(0, line_end + 1, title_line(options.title, source.substr(title_end, line_end - title_end)));
  return source;
}

}  // namespace tonnx
