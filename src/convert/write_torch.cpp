// write_torch.cpp - gives the graph of a program its weights, under the names that generated code has, and writes it.
#include "convert/write_torch.h"

#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "formats/torchscript/torchscript.h"
#include "modules/outline.h"
#include "passes/dialects/dialect.h"
#include "passes/dialects/to_exported.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/graph_types.h"

namespace tonnx {
namespace {

/// A weight as the state dict has it, with its two dimensions swapped: nodes that swap them go away, others get one
/// that swaps them back.
Value* with_dims_swapped(Graph& graph, Value* weight) {
  auto tensor = std::make_shared<Tensor>(*weight->constant);
  std::swap(tensor->dims[0], tensor->dims[1]);
  Value* result = graph.add_initializer(weight->name, std::move(tensor));
  result->trainable = weight->trainable;
  const std::vector<Use> uses = weight->uses;
  for (const Use& use : uses) {
    if (use.user == nullptr || !swaps_dims(*use.user)) continue;
    use.user->graph->replace_uses(use.user->output(0), result);
    use.user->graph->erase(use.user);
  }
  if (weight->uses.empty()) return result;
  Node* swap = graph.add_node("aten", "t", graph.first());
  Value* back = graph.add_output_to(swap, graph.unique_name(weight->name), weight->type);
  graph.replace_uses(weight, back);
  add_operand(*swap, "self", result);
  return result;
}

/// Transposed weights become initializers of the shape that the state dict has.
void swap_transposed(Graph& graph, ModuleTree& tree) {
  const auto swap = [&](std::vector<StateEntry>& entries) {
    for (StateEntry& entry : entries) {
      if (entry.transposed) entry.value = with_dims_swapped(graph, entry.value);
    }
  };
  swap(tree.tensors);
  for (Submodule& module : tree.submodules) swap(module.state);
}

/// A weight that modules share is one value: that of the module that has it.
void join_tied(Graph& graph, ModuleTree& tree) {
  for (Submodule& module : tree.submodules) {
    if (module.tied_to < 0) continue;
    const StateEntry& kept = tree.submodules[static_cast<size_t>(module.tied_to)].state[0];
    StateEntry& other = module.state[0];
    if (other.value == kept.value) continue;
    Value* joined = kept.value;
    if (kept.transposed != other.transposed) {
      Node* swap = graph.add_node("aten", "t", graph.first());
      Type type = other.value->type;
      joined = graph.add_output_to(swap, graph.unique_name(other.value->name), std::move(type));
      add_operand(*swap, "self", kept.value);
    }
    graph.replace_uses(other.value, joined);
    other.value = kept.value;
    other.transposed = kept.transposed;
  }
}

/// Weights that are the same bytes become one in the graph, and keep their names.
void join_equal(Graph& graph, std::vector<StateEntry>& state) {
  using Key = std::tuple<const uint8_t*, size_t, std::vector<int64_t>, DType, bool, bool>;
  std::map<Key, Value*> first;
  for (StateEntry& each : state) {
    const Tensor& tensor = *each.value->constant;
    if (tensor.data.empty()) continue;
    const auto [at, fresh] = first.try_emplace(
        Key{tensor.data.data(), tensor.data.size(), tensor.dims, tensor.dtype, each.transposed, each.trainable},
        each.value);
    if (fresh) continue;
    graph.replace_uses(each.value, at->second);
    each.value = at->second;
  }
}

/// Modules that are called more than once, or whose weights others use as well: torch.export.unflatten cannot be told
/// of them.
std::set<size_t> shared_modules(const ModuleTree& tree) {
  std::set<size_t> result, called;
  for (const auto& [node, module] : tree.submodule_of) {
    if (!called.insert(module).second) result.insert(module);
  }
  const auto is_of = [&](const Node* node, size_t module) {
    const auto at = tree.submodule_of.find(node);
    return at != tree.submodule_of.end() && at->second == module;
  };
  for (size_t i = 0; i < tree.submodules.size(); ++i) {
    for (const StateEntry& weight : tree.submodules[i].state) {
      for (const Use& use : weight.value->uses) {
        const Node* user = use.user;
        if (user != nullptr && weight.transposed && swaps_dims(*user))
          user = user->output(0)->uses.size() == 1 ? user->output(0)->uses[0].user : nullptr;
        if (!is_of(user, i)) result.insert(i);
      }
    }
  }
  return result;
}

constexpr std::string_view kRoot = "L__self__,,Model";

/// Nodes that were made on the way belong to the model itself.
void mark_others(Graph& graph) {
  for (Node& node : graph) {
    if (node.metadata.empty()) node.metadata.emplace_back("nn_module_stack", kRoot);
    for (const GraphPtr& inner : subgraphs_of(node)) mark_others(*inner);
  }
}

/// torch.export.unflatten makes a module of the nodes that name it.
void mark_modules(Graph& graph, const ModuleTree& tree, const std::set<size_t>& shared) {
  for (Node& node : graph) {
    std::string stack(kRoot);
    const auto module = tree.submodule_of.find(&node);
    if (module != tree.submodule_of.end() && !shared.contains(module->second)) {
      const Submodule& submodule = tree.submodules[module->second];
      stack += fmt::format(";L__self___{},{},torch.{}", submodule.name, submodule.name, submodule.spec.type);
    }
    node.metadata.clear();
    node.metadata.emplace_back("nn_module_stack", std::move(stack));
    for (const GraphPtr& inner : subgraphs_of(node)) mark_modules(*inner, tree, shared);
  }
}

}  // namespace

std::vector<StateEntry> state_for_program(Graph& graph) {
  ModuleTree tree = module_tree_of(graph);
  join_tied(graph, tree);
  mark_modules(graph, tree, shared_modules(tree));
  swap_transposed(graph, tree);
  std::vector<StateEntry> state = state_of(tree);
  join_equal(graph, state);
  to_exported(graph);
  mark_others(graph);
  return state;
}

void write_torchscript_file(Graph& graph, const std::vector<std::string>& output_names, const std::string& path,
                            const ConvertOptions& options) {
  in_context([&] { return "writing " + path; },
             [&] {
               ModuleTree tree = module_tree_of(graph, TreeNames::Flat);
               swap_transposed(graph, tree);
               std::erase_if(tree.tensors, is_generator);
               infer_aten_types(graph, "a");
               rewrite_functions(graph);
               remove_unused_nodes(graph);
               write_torchscript(graph, tree, output_names, path, options.progress, options.memory);
             });
}

}  // namespace tonnx
