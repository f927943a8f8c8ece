// writer.cpp - the whole Python file: docstring, imports, the class, and how it is loaded.
#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/join.h"
#include "base/utf8.h"
#include "formats/python/layout.h"
#include "formats/python/python.h"
#include "formats/python/statements.h"
#include "ops/frame/module_tree.h"

namespace tonnx {
namespace python {
namespace {

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

void add_rows(std::string& text, std::string_view heading,
              const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, std::min<size_t>(row.first.size(), 40));
  for (size_t i = 0; i < rows.size(); ++i) {
    text += shorten(fmt::format("{:<9}{:<{}}  {}", i == 0 ? heading : "", rows[i].first, widest, rows[i].second),
                    kLineWidth) +
            "\n";
  }
}

std::string docstring(const Graph& graph, const Model& origin, const PythonOptions& options,
                      const std::vector<StateTensor>& state, const Forward& forward) {
  const std::string title = plain(options.title.empty() ? graph.name : options.title);
  std::string text = "\"\"\"" + shorten(title.empty() ? "A converted model" : title, 100) + ": a PyTorch module.\n\n";
  std::string made_by = plain(origin.producer_name);
  if (!made_by.empty() && !origin.producer_version.empty()) made_by += " " + plain(origin.producer_version);
  const std::string from =
      origin.path.empty() ? "an ONNX model" : plain(origin.path.substr(origin.path.rfind('/') + 1));
  std::vector<std::string> notes;
  if (!origin.opsets.empty()) notes.push_back(fmt::format("opset {}", origin.opset("")));
  if (!made_by.empty()) notes.push_back("made by " + made_by);
  const std::string about = notes.empty() ? "" : fmt::format(" ({})", joined(notes, ", "));
  text += shorten(fmt::format("Converted by tonnx from {}{}.", from, about), kLineWidth) + "\n\n";
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& input = *graph.inputs()[i];
    const bool renamed = input.name != forward.parameters[i];
    inputs.emplace_back(forward.parameters[i],
                        plain(text_of(input.type)) + (renamed ? fmt::format("  ({})", plain(input.name)) : ""));
  }
  for (const Value* output : origin.graph->outputs())
    outputs.emplace_back(plain(output->name), plain(text_of(output->type)));
  add_rows(text, "Inputs", inputs);
  add_rows(text, "Outputs", outputs);
  int64_t parameters = 0;
  for (const StateTensor& tensor : state) parameters += tensor.trainable ? tensor.tensor->count() : 0;
  if (!state.empty()) {
    text += fmt::format("{:<9}{}: {} tensor{}, {} parameter{}\n", "Weights", plain(options.weights_file), state.size(),
                        state.size() == 1 ? "" : "s", human_count(parameters), parameters == 1 ? "" : "s");
  }
  return text + "\"\"\"\n";
}

std::string tensor_line(const StateEntry& tensor) {
  const Tensor& constant = *tensor.value->constant;
  if (is_generator(tensor)) {
    return fmt::format("self.{} = torch.Generator(\"cpu\").manual_seed({})", tensor.name, element_as_int(constant, 0));
  }
  std::vector<std::string> arguments;
  for (const int64_t dim : constant.dims) arguments.push_back(std::to_string(dim));
  if (arguments.empty()) arguments.emplace_back("()");
  if (constant.dtype != DType::Float32) arguments.push_back("dtype=" + python_dtype(constant.dtype));
  const std::string empty = fmt::format("torch.empty({})", joined(arguments));
  if (tensor.trainable) return fmt::format("self.{} = nn.Parameter({})", tensor.name, empty);
  return fmt::format("self.register_buffer(\"{}\", {})", tensor.name, empty);
}

std::string init_method(const ModuleTree& tree, const PythonOptions& options) {
  std::string text = "    def __init__(self):\n        super().__init__()\n";
  for (const StateEntry& tensor : tree.tensors) text += lay_out(tensor_line(tensor), 8);
  for (const Submodule& module : tree.submodules) {
    text += lay_out(fmt::format("self.{} = {}({})", module.name, module.spec.type, module.spec.arguments), 8);
  }
  for (size_t i = 0; i < tree.external_names.size() && i < options.external.size(); ++i) {
    text += lay_out(fmt::format("self.{} = {}", tree.external_names[i], options.external[i].constructor), 8);
  }
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
        model.load_state_dict(load_file(weights, device=device), assign=True)
        return model.eval()
)";

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

}  // namespace
}  // namespace python

PythonModule write_python(const Graph& graph, const Model& origin, const PythonOptions& options) {
  using namespace python;
  ModuleTree tree = find_module_tree(graph);
  std::vector<StateTensor> state = state_tensors(tree, options);
  const Forward forward = write_forward(graph, tree, state.empty() ? "" : state[0].name);

  std::string body = "class Model(nn.Module):\n";
  const bool has_members = !tree.tensors.empty() || !tree.submodules.empty() || !tree.external_names.empty();
  if (has_members) body += init_method(tree, options) + "\n";
  body += lay_out(
      fmt::format("def forward(self{}{}):", forward.parameters.empty() ? "" : ", ", joined(forward.parameters)), 4);
  for (const Statement& statement : forward.statements) {
    body += statement.text.empty() ? "\n" : lay_out(statement.text, 8 + 4 * static_cast<size_t>(statement.level));
  }
  body += state.empty() ? kLoadNothing : kLoadWeights;

  PythonModule result;
  result.source = docstring(graph, origin, options, state, forward) + "\n";
  const size_t before = result.source.size();
  if (mentions(body, "itertools.")) result.source += "import itertools\n";
  if (mentions(body, "math.")) result.source += "import math\n";
  if (mentions(body, "Path(")) result.source += "from pathlib import Path\n";
  if (result.source.size() > before) result.source += "\n";
  if (mentions(body, "torch.")) result.source += "import torch\n";
  if (mentions(body, "F.")) result.source += "import torch.nn.functional as F\n";
  result.source += "from torch import nn\n";
  std::set<std::string> imports;
  for (const ExternalModule& external : options.external) {
    if (!external.import_line.empty()) imports.insert(external.import_line);
  }
  if (!imports.empty()) result.source += "\n";
  for (const std::string& line : imports) result.source += line + "\n";
  result.source += "\n\n" + body;
  result.state = std::move(state);
  result.external_names = std::move(tree.external_names);
  return result;
}

}  // namespace tonnx
