// pipeline.cpp - chains reading, lowering and writing.
#include "convert/pipeline.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "convert/fold_program.h"
#include "convert/inference.h"
#include "convert/opset.h"
#include "convert/raising.h"
#include "convert/scope_names.h"
#include "convert/simplify.h"
#include "convert/support.h"
#include "convert/weight_names.h"
#include "convert/weights.h"
#include "convert/write_torch.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/check_program.h"
#include "formats/pt2/pt2.h"
#include "formats/pth/pth.h"
#include "formats/safetensors/safetensors.h"
#include "formats/torchscript/torchscript.h"
#include "ir/clone.h"
#include "ir/origins.h"
#include "passes/aten/to_code.h"
#include "passes/aten/to_exported.h"
#include "passes/aten/whole_attention.h"
#include "passes/pass_table.h"
#include "passes/passes.h"

namespace tonnx {
namespace fs = std::filesystem;

namespace {

void require_known_opset(const Model& model) {
  if (model.opset("") > kNewestOpset) {
    fail_unsupported("the model follows opset {}, and tonnx knows opsets up to {}", model.opset(""), kNewestOpset);
  }
}

}  // namespace

std::vector<UnsupportedOp> find_unsupported(Model& model, const LoweringOptions& options) {
  require_known_opset(model);
  inline_functions(model);
  return find_unsupported(*model.graph, options);
}

namespace {

/// What a user says of an operator of their own.
void infer_custom(Node& node, const LoweringOptions& options) {
  const CustomOnnxOp* op = options.custom ? options.custom->find_onnx(node) : nullptr;
  if (op == nullptr || op->like.empty() || node.output(0) == nullptr) return;
  const Value* input = node.input(static_cast<size_t>(op->entry.signature.find_input(op->like)));
  if (input != nullptr && input->type.kind != Type::Kind::Unknown) node.output(0)->type = input->type;
}

}  // namespace

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

void prepare(Model& model, const LoweringOptions& options) {
  require_known_opset(model);
  inline_functions(model);
  require_supported(*model.graph, options);
  name_by_scopes(model);
  share_nonzero(*model.graph);
  part_weights(*model.graph);
  const auto leave_alone = [&](const Node& node) { return is_external(node, options); };
  upgrade_and_infer(*model.graph, leave_alone, {.keeps_weights = true},
                    [&](Node& node) { infer_custom(node, options); });
  remove_dead_code(*model.graph);
  simplify_for_lowering(*model.graph, leave_alone);
  remove_dead_code(*model.graph);
  expect_dialect(*model.graph, Dialect::Onnx);
}

PythonOptions file_options(const std::string& target, bool flat) {
  PythonOptions python;
  python.title = fs::path(target).stem().string();
  python.weights_file = python.title + ".safetensors";
  python.flat = flat;
  return python;
}

GraphPtr lower_for_python(const Model& model, const LoweringOptions& options) {
  GraphPtr graph = lower(model, options);
  simplify_for_code(*graph);
  expect_dialect(*graph, Dialect::Code);
  return graph;
}

void find_code_modules(Graph& graph) {
  recognise_quant_layers(graph);
  recognise_whole_attention(graph);
  share_concats(graph);
  follow_float_type(graph);
}

PythonModule python_of(Graph& graph, const Model& model, const PythonOptions& options) {
  find_code_modules(graph);
  return write_python(graph, model, options);
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

void replace_weights(Model& model, const std::vector<StateTensor>& weights, const std::string& path,
                     const LoweringOptions& options) {
  replace_weights(model, weights, path, [&](bool flat) {
    const OtherBudgetScope budget{Limits()};
    ModuleWeights made;
    const OriginsScope notes(made.origins);
    Model copy = clone(model);
    prepare(copy, options);
    made.module = python_of(*lower_for_python(copy, options), copy, file_options("model.py", flat));
    return made;
  });
}

void replace_weights(Program& program, const std::vector<StateTensor>& weights, const std::string& path,
                     const AllowedOps& allowed) {
  replace_weights(program.model, weights, path, [&](bool flat) {
    const OtherBudgetScope budget{Limits()};
    ModuleWeights made;
    const OriginsScope notes(made.origins);
    Program copy{clone(program.model), program.output_names};
    make_functional(copy);
    ready_for_python(copy, allowed);
    made.module = python_of(*copy.model.graph, copy.model, file_options("model.py", flat));
    return made;
  });
}

OnnxWriteOptions onnx_options(const ConvertOptions& options) {
  return {.external_data = options.external_data, .progress = options.progress, .memory = options.memory};
}

void convert_model(Model& model, const std::string& target, const ConvertOptions& options) {
  const Route way = route(Format::Onnx, target, options);
  if (!options.weights.empty())
    replace_weights(model, read_weights(options.weights, options.part), options.weights, lowering_options(options));
  set_input_shapes(model, options.input_shapes);
  set_dynamic_dims(model, options);
  if (way.target == Format::Onnx) {
    if (options.opset) change_opset(model, *options.opset);
    return write_onnx(model, target, onnx_options(options));
  }
  const LoweringOptions lowering = lowering_options(options);
  prepare(model, lowering);
  const GraphPtr graph = lower_for_python(model, lowering);
  if (way.target == Format::Pt2) return write_pt2_file(*graph, model, target, options);
  if (way.target == Format::TorchScript) {
    std::vector<std::string> outputs;
    for (const Value* output : model.graph->outputs()) outputs.push_back(output->name);
    return write_torchscript_file(*graph, outputs, target, options);
  }
  write_python_files(python_of(*graph, model, file_options(target, options.flat)), target, options.progress,
                     options.memory);
}

namespace {

/// Weights, but not the constants that the code itself has, become inputs.
void make_weights_inputs(Graph& graph, const Graph& aten, bool keep_values) {
  std::set<std::string_view> weights;
  for (const Value* value : aten.initializers()) weights.insert(value->name);
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers) {
    if (!weights.contains(value->name)) continue;
    Value* input = graph.add_input(graph.unique_name(value->name), value->type);
    graph.replace_uses(value, input);
    graph.remove_initializer(value);
    std::swap(input->name, value->name);
    if (!keep_values) continue;
    input->constant = value->constant;
    graph.add_initializer(input);
  }
}

void set_custom_opsets(Model& model, const std::map<std::string, int64_t>& versions) {
  Names known;
  for (const auto& [domain, version] : model.opsets) {
    if (!domain.empty()) known.emplace_back(domain);
  }
  for (const auto& [domain, version] : versions) {
    if (domain.empty() || domain == "ai.onnx")
      fail_invalid("custom_opsets is for other domains than that of ONNX itself, which has opset_version");
    const auto at = std::find_if(model.opsets.begin(), model.opsets.end(),
                                 [&name = domain](const auto& imported) { return imported.first == name; });
    if (at == model.opsets.end())
      fail_invalid("custom_opsets names the domain '{}', and the domains of the model's operators are: {}", domain,
                   nearest_list(domain, known));
    at->second = version;
  }
}

}  // namespace

Model raised_program(const Program& program, const ExportOptions& options) {
  Model model = raise(program.model, program.output_names, options.raising, options.custom.get());
  set_custom_opsets(model, options.custom_opsets);
  simplify_raised(*model.graph, options.raising.opset, options.raising.keeps_weights);
  return model;
}

Model onnx_of(const Program& program, const ExportOptions& options) {
  Model model = raised_program(program, options);
  change_opset(model, options.raising.opset);
  if (!options.raising.training && !options.raising.keeps_weights)
    fuse_normalisations(*model.graph);  // last: large weights are only scaled as they are written
  remove_dead_code(*model.graph);
  expect_dialect(*model.graph, Dialect::Onnx);
  if (!options.export_params || options.keep_initializers_as_inputs)
    make_weights_inputs(*model.graph, *program.model.graph, options.export_params);
  return model;
}

void make_functional(Program& program, bool rolls_loops) {
  functionalize(*program.model.graph);
  if (rolls_loops) roll_loops(*program.model.graph);  // before iterations differ in what nobody uses
  remove_dead_code(*program.model.graph);
  // operators that wrote, and other names of operators, have a schema only now
  pt2::check_program(*program.model.graph);
  expect_dialect(*program.model.graph, Dialect::Exported);
}

void ready_for_python(Program& program, const AllowedOps& allowed) {
  Graph& graph = *program.model.graph;
  fold_program(graph);
  to_code(graph, allowed);
  simplify_for_code(graph);
  expect_dialect(graph, Dialect::Code);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    Value* output = graph.outputs()[i];
    if (output->producer != nullptr && output->name != program.output_names[i])
      output->name = graph.unique_name(program.output_names[i]);
  }
}

Program read_script(const std::string& path, const ConvertOptions& options) {
  Program program = read_torchscript(path, {options.input_shapes, options.input_types});
  make_higher_order(*program.model.graph);
  return program;
}

Program read_script(const std::string& path, const ScriptCall& call) {
  Program program = read_torchscript(path, call);
  make_higher_order(*program.model.graph);
  return program;
}

void convert_program(Program& program, const std::string& target, const ConvertOptions& options, Format source) {
  const Route way = route(source, target, options);
  if (!options.weights.empty())
    replace_weights(program, read_weights(options.weights, options.part), options.weights, options.allow_ops);
  make_functional(program);
  if (way.target == Format::Onnx) {
    return write_onnx(onnx_of(program, export_options(options)), target, onnx_options(options));
  }
  ready_for_python(program, options.allow_ops);
  if (way.target == Format::TorchScript)
    return write_torchscript_file(*program.model.graph, program.output_names, target, options);
  if (way.target == Format::Pt2) return write_pt2_file(*program.model.graph, program.model, target, options);
  const PythonOptions python = file_options(target, options.flat);
  write_python_files(python_of(*program.model.graph, program.model, python), target, options.progress, options.memory);
}

void convert_file(const std::string& source, const std::string& target, const ConvertOptions& options) {
  const BudgetScope scope(options.limits);
  in_context([&] { return "converting " + source; },
             [&] {
               const Format format = route(source, target, options).source;
               if (format == Format::Onnx) {
                 Model model = read_onnx(source);
                 convert_model(model, target, options);
               } else if (is_weights_file(source)) {
                 convert_weights(source, target, options.part, options.progress);
               } else {
                 Program program = format == Format::Pt2 ? read_pt2(source) : read_script(source, options);
                 convert_program(program, target, options, format);
               }
             });
}

}  // namespace tonnx
