// declare.cpp - types of all values, found out and written down.
#include <unordered_map>

#include "base/error.h"
#include "convert/inference.h"
#include "convert/pipeline.h"
#include "convert/simplify.h"
#include "ir/dim_map.h"

namespace tonnx {
namespace {

using Declared = std::unordered_map<const Value*, Type>;

template <class Visit>
void for_each_value(Graph& graph, Visit&& visit) {
  for (Value* input : graph.inputs()) visit(*input);
  for (const Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) for_each_value(*subgraph, visit);
    for (Value* output : node.outputs()) {
      if (output != nullptr) visit(*output);
    }
  }
}

bool contradict(const Type& a, const Type& b) {
  if (a.kind == Type::Kind::Unknown || b.kind == Type::Kind::Unknown) return false;
  if (a.kind != b.kind) return true;
  if (a.dtype != b.dtype && a.dtype != DType::Undefined && b.dtype != DType::Undefined) return true;
  if (a.shape && b.shape) {
    if (a.shape->size() != b.shape->size()) return true;
    for (size_t i = 0; i < a.shape->size(); ++i) {
      const auto x = (*a.shape)[i].constant(), y = (*b.shape)[i].constant();
      if (x && y && *x != *y) return true;
    }
  }
  for (size_t i = 0; i < a.elements.size() && i < b.elements.size(); ++i) {
    if (contradict(a.elements[i], b.elements[i])) return true;
  }
  return false;
}

/// Numbers that the file gives where only an expression was found, and its names where it has them.
Type completed(Type found, const Type& declared) {
  if (found.kind == Type::Kind::Unknown) return declared;
  if (!found.is_tensor() || !declared.is_tensor()) return found;
  if (found.dtype == DType::Undefined) found.dtype = declared.dtype;
  if (!found.shape) found.shape = declared.shape;
  if (!found.shape || !declared.shape || found.shape->size() != declared.shape->size()) return found;
  for (size_t i = 0; i < found.shape->size(); ++i) {
    const Dim& said = (*declared.shape)[i];
    if (!(*found.shape)[i].is_constant() && said.is_constant()) (*found.shape)[i] = said;
  }
  return found;
}

/// What the file declares is not written as it stood there.
void forget_declarations(Graph& graph) {
  for (std::vector<Bytes>* declarations : {&graph.input_declarations, &graph.output_declarations}) {
    for (Bytes& declaration : *declarations) declaration = {};
  }
  graph.value_declarations.clear();
  for (Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) {
      node.mark_changed();
      forget_declarations(*subgraph);
    }
  }
}

bool is_made(std::string_view name) { return FreshDims::is_made(name); }

}  // namespace

void infer_and_declare(Model& model, const std::map<std::string, std::vector<int64_t>>& input_shapes) {
  constexpr int kRounds = 3;
  if (model.opset("") > kNewestOpset) {
    fail_unsupported("the model follows opset {}, and tonnx knows opsets up to {}", model.opset(""), kNewestOpset);
  }
  set_input_shapes(model, input_shapes);
  Graph& graph = *model.graph;
  Declared declared;
  for_each_value(graph, [&](Value& value) { declared.emplace(&value, value.type); });
  OnnxInference inference({.rewrites = false, .leave_alone = {}, .fold = {}});
  for (int round = 0; round < kRounds; ++round) {
    inference.walk(graph);
    const DimMap map = solve_equal(inference.fresh().take_equal(), is_made);
    if (map.empty()) break;
    for_each_value(graph, [&](Value& value) {
      value.type = substituted(std::move(value.type), map);
      if (!value.known_ints) return;
      for (Dim& dim : *value.known_ints) dim = substituted(dim, map);
    });
  }
  for_each_value(graph, [&](Value& value) {
    const auto at = declared.find(&value);
    if (at == declared.end()) return;
    if (contradict(at->second, value.type)) {
      fail_invalid("value '{}' is declared as {}, and what is computed is {}", value.name, text_of(at->second),
                   text_of(value.type));
    }
    value.type = completed(std::move(value.type), at->second);
  });
  forget_declarations(graph);
}

}  // namespace tonnx
