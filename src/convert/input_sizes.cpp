// input_sizes.cpp - gives the inputs of a model other sizes than its file declares, and declares what follows.
#include "convert/input_sizes.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "convert/inference.h"
#include "convert/opening/open_sizes.h"
#include "convert/pipeline.h"
#include "ir/clone.h"
#include "ir/dim_map.h"

namespace tonnx {
namespace {

void forget_shapes(Graph& graph) {
  graph.value_declarations.clear();
  for (Bytes& declaration : graph.output_declarations) declaration = {};
  for (Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) {
      node.mark_changed();
      for (Bytes& declaration : subgraph->input_declarations) declaration = {};
      for (Value* input : subgraph->inputs()) input->type = ranked(std::move(input->type));
      forget_shapes(*subgraph);
    }
    for (Value* output : node.outputs()) {
      if (output != nullptr) output->type = without_shapes(std::move(output->type));
    }
  }
}

bool is_nameless(const Dim& size) { return size.symbol_name() == ""; }

/// Whether the size says more than that it is one.
bool is_telling(const Dim& size) {
  if (size.is_constant()) return true;
  for (const auto& [product, coefficient] : size.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      const bool is_said = atom->kind == 's' ? !atom->text.empty() && !FreshDims::is_made(atom->text)
                                             : is_telling(atom->a) && is_telling(atom->b);
      if (!is_said) return false;
    }
  }
  return true;
}

/// What the file declares, with what has been found out beyond that.
Type declared_type(const Type& found, const Type& declared) {
  const bool is_other = declared.kind != Type::Kind::Unknown && !declared.is_tensor();
  if (is_other || !found.is_tensor() || !found.shape || found.dtype == DType::Undefined) return declared;
  Type result = declared;
  if (!declared.is_tensor() || !declared.shape || declared.shape->size() != found.shape->size()) {
    result = found;
    for (Dim& size : *result.shape) {
      if (!is_telling(size)) size = Dim::symbol("");
    }
    return result;
  }
  for (size_t i = 0; i < found.shape->size(); ++i) {
    const Dim& size = (*found.shape)[i];
    Dim& said = (*result.shape)[i];
    if (size.is_constant() || (is_nameless(said) && is_telling(size))) said = size;
  }
  return result;
}

/// The types of the outputs that follow from the inputs.
std::vector<Type> inferred_outputs(const Model& model) {
  if (model.opset("") > kNewestOpset) return output_ranks(model);
  Model copy = clone(model);
  OnnxInference({.rewrites = false, .leave_alone = {}, .fold = {}, .infer_other = {}, .before = {}, .after = {}})
      .walk(*copy.graph);
  std::vector<Type> result;
  for (const Value* output : copy.graph->outputs()) result.push_back(output->type);
  return result;
}

void set_shapes(Model& model, const ShapesByInput& shapes) {
  for (const auto& [name, dims] : shapes) {
    const size_t at = require_input(model, name);
    Value& input = *model.graph->inputs()[at];
    if (!input.type.shape) input.type.shape = Shape(dims.size(), Dim::symbol(""));
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] >= 0) (*input.type.shape)[i] = dims[i];
    }
    model.graph->input_declarations[at] = {};
  }
}

/// Opens the sizes that the file fixes to other numbers. Those that change alike at the same axis are one size.
void open_changed_sizes(Model& model, const ShapesByInput& shapes) {
  std::vector<DynamicDim> changed;
  for (const auto& [name, dims] : shapes) {
    const Type& type = model.graph->inputs()[require_input(model, name)]->type;
    for (size_t i = 0; type.shape && i < dims.size(); ++i) {
      const auto fixed = (*type.shape)[i].constant();
      if (!fixed || dims[i] < 0 || *fixed == dims[i]) continue;
      const std::string size = fmt::format("size_{}_of_{}_to_{}", i, *fixed, dims[i]);
      changed.push_back({name, static_cast<int64_t>(i), size, 0, std::nullopt});
    }
  }
  if (changed.empty()) return;
  try {
    open_sizes(model, changed);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    Model direct = clone(model);
    set_shapes(direct, shapes);
    infer_outputs(direct, output_ranks(direct));  // says what is wrong with these very numbers, where that is known
    throw;
  }
}

}  // namespace

size_t require_input(const Model& model, const std::string& name) {
  Names known;
  for (const Value* value : inputs_without_values(*model.graph)) known.emplace_back(value->name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    fail_invalid("the model has no input '{}'; it has: {}", name, nearest_list(name, known));
  const auto& inputs = model.graph->inputs();
  const auto at = std::find_if(inputs.begin(), inputs.end(), [&](const Value* value) { return value->name == name; });
  require((*at)->type.is_tensor(), "input '{}' is not a tensor", name);
  return static_cast<size_t>(at - inputs.begin());
}

std::vector<Type> output_ranks(const Model& model) {
  std::vector<Type> result;
  for (const Value* output : model.graph->outputs()) result.push_back(ranked(output->type));
  return result;
}

void forget_declared_shapes(Model& model) { forget_shapes(*model.graph); }

void declare_outputs(Graph& graph, const std::vector<Type>& declared) {
  for (size_t i = 0; i < declared.size(); ++i) {
    Value* output = graph.outputs()[i];
    output->type = declared_type(output->type, declared[i]);
    if (!(output->type == declared[i])) graph.output_declarations[i] = {};
  }
}

void infer_outputs(Model& model, const std::vector<Type>& declared) {
  forget_declared_shapes(model);
  const std::vector<Type> found = inferred_outputs(model);
  for (size_t i = 0; i < found.size(); ++i) model.graph->outputs()[i]->type = found[i];
  declare_outputs(*model.graph, declared);
}

void set_input_shapes(Model& model, const ShapesByInput& shapes) {
  if (shapes.empty()) return;
  for (const auto& [name, dims] : shapes) {
    const Type& type = model.graph->inputs()[require_input(model, name)]->type;
    require(!type.shape || type.shape->size() == dims.size(), "input '{}' has {} dimensions, and {} are given", name,
            type.shape ? type.shape->size() : 0, dims.size());
  }
  const std::vector<Type> declared = output_ranks(model);
  open_changed_sizes(model, shapes);
  set_shapes(model, shapes);
  infer_outputs(model, declared);
}

void set_dynamic_dims(Model& model, const ConvertOptions& options) {
  if (!options.dynamic.empty()) open_sizes(model, options.dynamic, {.judge = options.compare, .warn = options.warn});
}

}  // namespace tonnx
