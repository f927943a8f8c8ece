// request.cpp - which sizes of a model's inputs are to be open.
#include "convert/opening/request.h"

#include <optional>

#include "base/error.h"

namespace tonnx {
namespace {

/// Sizes that are open already get another name, wherever they stand.
void rename_sizes(Graph& graph, const DimMap& names) {
  if (names.empty()) return;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Value& input = *graph.inputs()[i];
    const Type renamed = substituted(input.type, names);
    if (renamed == input.type) continue;
    input.type = renamed;
    graph.input_declarations[i] = {};
  }
}

/// Without the name of an input, the first dimensions of all inputs that have one as large as the first such input.
std::vector<DynamicDim> named(const Model& model, const std::vector<DynamicDim>& dims) {
  std::vector<DynamicDim> result;
  for (const DynamicDim& dim : dims) {
    if (!dim.input.empty()) {
      result.push_back(dim);
      continue;
    }
    std::optional<Dim> size;
    for (const Value* input : inputs_without_values(*model.graph)) {
      if (!input->type.shape || input->type.shape->empty() || !(*input->type.shape)[0].is_constant()) continue;
      if (!size) size = (*input->type.shape)[0];
      if (!(*size == (*input->type.shape)[0])) continue;
      result.push_back(dim);
      result.back().input = input->name;
    }
  }
  return result;
}

}  // namespace

OpeningRequest read_request(const Model& model, const std::vector<DynamicDim>& dims) {
  OpeningRequest result;
  for (const DynamicDim& dim : named(model, dims)) {
    const size_t place = require_input(model, dim.input);
    const Value& input = *model.graph->inputs()[place];
    if (!input.type.shape) fail_invalid("input '{}' has no shape", dim.input);
    const auto rank = static_cast<int64_t>(input.type.shape->size());
    require(dim.axis >= -rank && dim.axis < rank, "input '{}' has {} dimensions, and none of number {}", dim.input,
            rank, dim.axis);
    require(dim.low >= 0 && (!dim.high || *dim.high >= dim.low), "the sizes from {} to {} are none", dim.low,
            dim.high.value_or(0));
    const auto axis = static_cast<size_t>(dim.axis < 0 ? dim.axis + rank : dim.axis);
    const Dim& size = (*input.type.shape)[axis];
    const auto fixed = size.constant();
    if (!fixed) {
      const auto name = size.symbol_name();
      if (name && !name->empty() && *name != dim.name)
        result.renamed.emplace(*name, Dim::symbol(dim.name));
      else
        result.places.push_back({place, axis, dim.name});
      continue;
    }
    const auto [at, is_new] = result.opened.emplace(dim.name, *fixed);
    require(at->second == *fixed, "'{}' is to be the name of a size that is {} and of one that is {}", dim.name,
            at->second, *fixed);
    if (axis == 0) result.samples.insert(dim.name);
    result.places.push_back({place, axis, dim.name});
  }
  return result;
}

void declare_open(Model& model, const OpeningRequest& request) {
  rename_sizes(*model.graph, request.renamed);
  for (const auto& [input, axis, name] : request.places) {
    (*model.graph->inputs()[input]->type.shape)[axis] = Dim::symbol(name);
    model.graph->input_declarations[input] = {};
  }
}

}  // namespace tonnx
