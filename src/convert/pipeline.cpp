// pipeline.cpp - options of conversions, and the files of generated code.
#include "convert/pipeline.h"

#include <filesystem>

#include "base/error.h"
#include "base/output_file.h"
#include "convert/compilation.h"
#include "convert/weight_names.h"
#include "convert/weights.h"
#include "formats/onnx/onnx.h"
#include "formats/pth/pth.h"
#include "formats/safetensors/safetensors.h"
#include "ir/clone.h"
#include "ir/origins.h"

namespace tonnx {
namespace fs = std::filesystem;

LoweringOptions lowering_options(const ConvertOptions& options) {
  LoweringOptions result;
  result.custom = options.custom;
  return result;
}

ExportOptions export_options(const ConvertOptions& options) {
  ExportOptions result = options.exporting;
  if (options.opset) result.raising.opset = *options.opset;
  result.raising.source_lines = options.source_lines.value_or(true);
  result.custom = options.custom;
  return result;
}

PythonOptions file_options(const std::string& target, bool flat) {
  PythonOptions python;
  python.title = fs::path(target).stem().string();
  python.weights_file = python.title + ".safetensors";
  python.flat = flat;
  return python;
}

void write_python_files(const PythonModule& module, const std::string& path,
                        const std::function<void(uint64_t, uint64_t)>& progress, std::vector<std::byte>* memory) {
  in_context([&] { return "writing " + path; },
             [&] {
               std::vector<OutputFile> files;
               files.reserve(2);
               files.push_back(memory != nullptr ? OutputFile(*memory) : OutputFile(path));
               const auto format = find_format(path);
               std::vector<StateTensor> state = module.state;  // under all names, for other code than ours
               for (const auto& [name, of] : module.tied) (state.emplace_back(state[of]), state.back().name = name);
               if (format == Format::Pth) {
                 write_pth(files[0], state, progress);
               } else if (format == Format::Safetensors) {
                 write_safetensors(files[0], state, progress);
               } else {
                 files[0].write(std::string_view(module.source));
                 if (!module.state.empty()) {
                   files.emplace_back(fs::path(path).replace_extension(".safetensors").string());
                   write_safetensors(files[1], module.state, progress);
                 }
               }
               commit_all(files);
             });
}

void replace_weights(Model& model, Dialect dialect, const std::vector<StateTensor>& weights, const std::string& path,
                     const ConvertOptions& options) {
  ConvertOptions asked;
  asked.custom = options.custom;
  asked.allow_ops = options.allow_ops;
  replace_weights(model, weights, path, [&](bool flat) {
    const OtherBudgetScope budget{Limits()};
    ModuleWeights made;
    const OriginsScope notes(made.origins);
    Model copy = clone(model);
    made.module = Compilation(copy, dialect, asked).python(file_options("model.py", flat));
    return made;
  });
}

OnnxWriteOptions onnx_options(const ConvertOptions& options) {
  return {.external_data = options.external_data, .progress = options.progress, .memory = options.memory};
}

}  // namespace tonnx
