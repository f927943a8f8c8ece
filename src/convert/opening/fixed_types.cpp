// fixed_types.cpp - the types that values have in the file, where all sizes are fixed.
#include "convert/opening/fixed_types.h"

#include <unordered_set>

#include "convert/inference.h"

namespace tonnx {

FixedTypes::FixedTypes(Model& model) {
  Graph& graph = *model.graph;
  const std::vector<const Value*> known = constants(graph);
  OnnxInference inference(
      {.rewrites = false, .leave_alone = {}, .fold = {}, .infer_other = {}, .before = {}, .after = {}});
  inference.walk(graph);
  for_each_value(graph, [&](const Value& value) {
    const auto [at, is_new] = types_.emplace(value.name, value.type);
    if (!is_new) at->second = {};
  });
  forget_found(graph, known);
}

const Type* FixedTypes::find(const Value* value) const {
  if (value == nullptr) return nullptr;
  if (value->producer == nullptr && value->constant) return &value->type;
  const auto at = types_.find(value->name);
  return at == types_.end() || at->second.kind == Type::Kind::Unknown ? nullptr : &at->second;
}

std::vector<const Value*> FixedTypes::constants(const Graph& graph) {
  std::vector<const Value*> result;
  for_each_value(graph, [&](const Value& value) {
    if (value.constant) result.push_back(&value);
  });
  return result;
}

void FixedTypes::forget_found(Graph& graph, const std::vector<const Value*>& known) {
  const std::unordered_set<const Value*> kept(known.begin(), known.end());
  for_each_value(graph, [&](Value& value) {
    const bool is_input = value.producer == nullptr && value.graph == &graph;
    value.known_ints.reset();
    if (!kept.contains(&value)) value.constant.reset();
    if (!is_input)
      value.type = value.producer == nullptr ? ranked(std::move(value.type)) : without_shapes(std::move(value.type));
  });
}

}  // namespace tonnx
