// passes.cpp - the passes one by one.
#include "api/internal.h"

// behind it, as it says which names the sources of the library use
#include <tonnx/tools.h>

#include <algorithm>

#include "convert/one_pass.h"

namespace tonnx::v1 {
namespace {

const char* name_of(core::Phase phase) {
  switch (phase) {
    case core::Phase::Simplify: return "simplify";
    case core::Phase::Code: return "code";
    case core::Phase::Python: return "python";
  }
  return "";
}

bool run_on_onnx(Model::Content& content, const core::Pass& pass) {
  if (!content.is_onnx())
    core::fail_unsupported("the pass {} is for models of ONNX, and this is a graph of aten", pass.name);
  check_edited(content);
  core::Graph& graph = *content.model().graph;
  graph.input_declarations.resize(graph.inputs().size());
  graph.output_declarations.resize(graph.outputs().size());
  const bool is_changed = core::run_simplify_pass(content.model(), pass);
  graph.value_declarations.clear();
  return is_changed;
}

void make_code(Model::Content& content) {
  if (content.dialect == core::Dialect::Code || content.dialect == core::Dialect::Python) return;
  core::Program copy = copy_of(content);
  core::Compilation compilation(copy, content.dialect);
  compilation.bring_to_plain_code();
  if (content.program.output_names.empty()) {
    for (const core::Value* output : content.graph().outputs()) content.program.output_names.push_back(output->name);
  }
  core::Model& model = content.model();
  model.graph = compilation.graph();
  model.functions.clear();
  model.opsets.clear();
  content.dialect = compilation.dialect();
  if (content.is_onnx()) content.format = Format::TorchExport;
}

}  // namespace

std::vector<PassRow> all_passes() {
  std::vector<PassRow> result;
  for (const core::Pass& pass : core::pass_table()) {
    result.push_back({std::string(pass.name), std::string(pass.sentence), core::name_of(pass.dialect),
                      name_of(pass.phase), pass.when == core::When::Always});
  }
  return result;
}

bool run_pass(Model& model, const std::string& name) {
  return translated([&] {
    const core::Pass& pass = core::find_pass(name);
    Model::Content& content = Access::content(model);
    const ModelBudget budget(content);
    if (pass.phase == core::Phase::Simplify) return run_on_onnx(content, pass);
    make_code(content);
    content.dialect = std::max(content.dialect, pass.dialect);  // what a pass of Python made, code does not have
    return core::run_aten_pass(*content.model().graph, pass);
  });
}

}  // namespace tonnx::v1
