// live.cpp - programs of a process that has PyTorch: exported in memory, or scripted and read for one call.
#include "api/internal.h"

// behind it, as it says which names the sources of the library use
#include <tonnx/live.h>

#include <filesystem>

#include "formats/pt2/pt2.h"
#include "formats/torchscript/torchscript.h"
#include "passes/dialects/to_exported.h"

namespace tonnx::v1 {
namespace {

constexpr int kMostNested = 200;  // lists and dicts of one argument inside one another

const core::Bytes& bytes_of_tensor(const Tensor& tensor, std::string_view what) {
  core::require(tensor.dtype() == DType::UInt8, "{} is a tensor of bytes, and this one is of {}", what,
                name_of(tensor.dtype()));
  return Access::tensor(tensor)->data;
}

/// The program is brought to what torch.export has once, and becomes ONNX any number of times.
Model model_of(core::Program program, Format format, uint64_t input_bytes, bool rolls_loops) {
  auto content = std::make_unique<Model::Content>();
  content->format = format;
  content->input_bytes = input_bytes;
  content->program = std::move(program);
  core::ConvertOptions options;
  options.rolls_loops = rolls_loops;
  core::Compilation(content->program, core::Dialect::Script, std::move(options)).bring_to(core::Dialect::Exported);
  content->dialect = core::Dialect::Exported;
  return Access::model(std::move(content));
}

core::ScriptArgument argument_of(const ScriptArgument& argument, size_t inputs, int depth = 0) {
  core::require(depth < kMostNested, "an argument of forward() is nested more than {} deep", kMostNested);
  core::require(argument.kind <= ScriptArgument::Kind::Dict, "an argument of forward() is of no kind that there is");
  if (argument.kind == ScriptArgument::Kind::Input)
    core::require(argument.integer >= 0 && static_cast<uint64_t>(argument.integer) < inputs,
                  "an argument of forward() is the input {} of {}", argument.integer, inputs);
  core::require(argument.kind != ScriptArgument::Kind::Dict || argument.items.size() % 2 == 0,
                "a dict among the arguments of forward() has a key without a value");
  core::ScriptArgument result{
      static_cast<core::ScriptArgument::Kind>(argument.kind), argument.integer, argument.real, argument.text, {}};
  for (const ScriptArgument& item : argument.items) result.items.push_back(argument_of(item, inputs, depth + 1));
  return result;
}
static_assert(static_cast<int>(ScriptArgument::Kind::Dict) == static_cast<int>(core::ScriptArgument::Kind::Dict));

}  // namespace

Model read_live_program(const Tensor& json, const std::vector<std::pair<std::string, Tensor>>& storages,
                        bool rolls_loops) {
  return translated([&] {
    const core::Bytes& text = bytes_of_tensor(json, "the program");
    std::map<std::string, core::Bytes> bytes;
    uint64_t size = text.size();
    for (const auto& [name, storage] : storages) {
      core::require(bytes.emplace(name, bytes_of_tensor(storage, "a storage")).second,
                    "the storage '{}' is given twice", name);
      size += storage.bytes().size();
    }
    const core::BudgetScope scope({}, size);
    return model_of(core::read_live_program(text, bytes), Format::TorchExport, size, rolls_loops);
  });
}

Model read_script(const std::string& path, const ScriptCall& call) {
  return translated([&] {
    core::ScriptCall inner;
    for (const auto& [name, type] : call.inputs) inner.inputs.emplace_back(name, core_of(type));
    for (const auto& [name, argument] : call.arguments)
      inner.arguments.emplace_back(name, argument_of(argument, call.inputs.size()));
    const core::BudgetScope scope;
    core::Program program = core::read_torchscript(path, inner);
    core::make_higher_order(*program.model.graph);
    return model_of(std::move(program), Format::TorchScript, std::filesystem::file_size(path), false);
  });
}

}  // namespace tonnx::v1
