// fixed_types.h - the types that values have in the file, where all sizes are fixed.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/model.h"

namespace tonnx {

/// Calls `visit` with each value of a graph and of the graphs inside its nodes, but for initializers.
template <class Visit>
void for_each_value(const Graph& graph, Visit&& visit) {
  for (Value* input : graph.inputs()) visit(*input);
  for (const Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) for_each_value(*subgraph, visit);
    for (Value* output : node.outputs()) {
      if (output != nullptr) visit(*output);
    }
  }
}

/// They are kept by the names of values: copies of the bodies of loops have the names of the originals.
class FixedTypes {
 public:
  explicit FixedTypes(Model& model);

  const Type* find(const Value* value) const;
  void learn(const std::string& name, Type type) { types_[name] = std::move(type); }

  /// Values of nodes that have a constant although nothing was inferred yet.
  static std::vector<const Value*> constants(const Graph& graph);
  /// Takes back what was inferred of values, but for the inputs of the model.
  static void forget_found(Graph& graph, const std::vector<const Value*>& known);

 private:
  std::unordered_map<std::string, Type> types_;
};

}  // namespace tonnx
