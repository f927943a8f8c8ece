// edges.cpp - what is done with a graph on each step from one dialect to another.
#include "convert/edges.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "convert/graph_steps.h"
#include "convert/inference.h"
#include "convert/opset.h"
#include "convert/raising.h"
#include "convert/simplify.h"
#include "formats/pt2/check_program.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

void require_known_opset(const Model& model) {
  if (model.opset("") > kNewestOpset) {
    fail_unsupported("the model follows opset {}, and tonnx knows opsets up to {}", model.opset(""), kNewestOpset);
  }
}

/// What a user says of an operator of their own.
void infer_custom(Node& node, const LoweringOptions& options) {
  const CustomOnnxOp* op = options.custom ? options.custom->find_onnx(node) : nullptr;
  if (op == nullptr || op->like.empty() || node.output(0) == nullptr) return;
  const Value* input = node.input(static_cast<size_t>(op->entry.signature.find_input(op->like)));
  if (input != nullptr && input->type.kind != Type::Kind::Unknown) node.output(0)->type = input->type;
}

/// Weights, but not the constants that the code itself has, become inputs.
void make_weights_inputs(Graph& graph, const std::set<std::string>& weights, bool keep_values) {
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

std::vector<UnsupportedOp> find_unsupported(Model& model, const LoweringOptions& options) {
  require_known_opset(model);
  inline_functions(model);
  return find_unsupported(*model.graph, options);
}

void make_functional(Graph& graph, bool rolls_loops) {
  functionalize(graph);
  if (rolls_loops) roll_loops(graph);  // before iterations differ in what nobody uses
  remove_dead_code(graph);
  // operators that wrote, and other names of operators, have a schema only now
  pt2::check_program(graph);
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
}

Model raise_program(const Model& program, const std::vector<std::string>& output_names, const ExportOptions& options) {
  Model model = raise(program, output_names, options.raising, options.custom.get());
  set_custom_opsets(model, options.custom_opsets);
  simplify_raised(*model.graph, options.raising.opset, options.raising.keeps_weights);
  return model;
}

void store(Model& model, const ExportOptions& options, const std::set<std::string>& weights) {
  change_opset(model, options.raising.opset);
  if (!options.raising.training && !options.raising.keeps_weights)
    fuse_normalisations(*model.graph);  // last: large weights are only scaled as they are written
  remove_dead_code(*model.graph);
  if (!options.export_params || options.keep_initializers_as_inputs)
    make_weights_inputs(*model.graph, weights, options.export_params);
}

}  // namespace tonnx
