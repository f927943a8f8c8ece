// write_torch.cpp - gives the graph of a program its weights, under the names that generated code has, and writes it.
#include "convert/write_torch.h"

#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "formats/pt2/pt2.h"
#include "formats/python/structure.h"
#include "formats/torchscript/torchscript.h"
#include "passes/aten/match.h"
#include "passes/aten/to_exported.h"
#include "passes/aten/types.h"
#include "passes/dialect.h"

namespace tonnx {
namespace {

bool is_turn(const Node& node) {
  if (is_aten(node, "t")) return true;
  const Attribute* dims = node.find_attribute("dims");
  const auto* order = dims ? dims->value.get<std::vector<int64_t>>() : nullptr;
  return is_aten(node, "permute") && order && *order == std::vector<int64_t>{1, 0};
}

/// A weight that the state dict has with its two dimensions swapped: nodes that turn it go away, others get one.
Value* turned(Graph& graph, Value* weight) {
  auto tensor = std::make_shared<Tensor>(*weight->constant);
  std::swap(tensor->dims[0], tensor->dims[1]);
  Value* result = graph.add_initializer(weight->name, std::move(tensor));
  result->trainable = weight->trainable;
  const std::vector<Use> uses = weight->uses;
  for (const Use& use : uses) {
    if (use.user == nullptr || !is_turn(*use.user)) continue;
    use.user->graph->replace_uses(use.user->output(0), result);
    use.user->graph->erase(use.user);
  }
  if (weight->uses.empty()) return result;
  Node* turn = graph.add_node("aten", "t", graph.first());
  Value* back = graph.add_output_to(turn, graph.unique_name(weight->name), weight->type);
  graph.replace_uses(weight, back);
  add_operand(*turn, "self", result);
  return result;
}

/// Parameters and buffers, and marks at the nodes that say which module they belong to.
std::vector<Pt2State> adopt_state(Graph& graph, const python::Structure& structure) {
  std::vector<Pt2State> state;
  for (const python::RootTensor& tensor : structure.tensors) {
    if (tensor.value->type.kind == Type::Kind::Opaque) continue;  // a random generator
    state.push_back({tensor.name, tensor.value, false, tensor.value->trainable});
  }
  for (const python::Submodule& module : structure.modules) {
    for (const ModuleSpec::Weight& weight : module.spec.weights) {
      Value* value = weight.transposed ? turned(graph, weight.value) : weight.value;
      const bool trainable = !weight.attribute.starts_with("running_");
      state.push_back({module.name + "." + weight.attribute, value, weight.transposed, trainable});
    }
  }
  return state;
}

/// Weights that are the same bytes become one in the graph, and keep their names.
void join_equal(Graph& graph, std::vector<Pt2State>& state) {
  using Key = std::tuple<const uint8_t*, size_t, std::vector<int64_t>, DType, bool, bool>;
  std::map<Key, const Value*> first;
  for (Pt2State& each : state) {
    const Tensor& tensor = *each.value->constant;
    if (tensor.data.empty()) continue;
    const auto [at, fresh] = first.try_emplace(
        Key{tensor.data.data(), tensor.data.size(), tensor.dims, tensor.dtype, each.transposed, each.trainable},
        each.value);
    if (fresh) continue;
    graph.replace_uses(const_cast<Value*>(each.value), const_cast<Value*>(at->second));
    each.value = at->second;
    each.is_alias = true;
  }
}

/// Modules that are called more than once, or whose weights others use as well: torch.export.unflatten cannot be told
/// of them.
std::set<size_t> shared_modules(const python::Structure& structure) {
  std::set<size_t> result, called;
  for (const auto& [node, module] : structure.module_of) {
    if (!called.insert(module).second) result.insert(module);
  }
  const auto is_of = [&](const Node* node, size_t module) {
    const auto at = structure.module_of.find(node);
    return at != structure.module_of.end() && at->second == module;
  };
  for (size_t i = 0; i < structure.modules.size(); ++i) {
    for (const ModuleSpec::Weight& weight : structure.modules[i].spec.weights) {
      for (const Use& use : weight.value->uses) {
        const Node* user = use.user;
        if (user != nullptr && weight.transposed && is_turn(*user))
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
void mark_modules(Graph& graph, const python::Structure& structure, const std::set<size_t>& shared) {
  for (Node& node : graph) {
    std::string stack(kRoot);
    const auto module = structure.module_of.find(&node);
    if (module != structure.module_of.end() && !shared.contains(module->second)) {
      const python::Submodule& submodule = structure.modules[module->second];
      stack += fmt::format(";L__self___{},{},torch.{}", submodule.name, submodule.name, submodule.spec.type);
    }
    node.metadata.clear();
    node.metadata.emplace_back("nn_module_stack", std::move(stack));
    for (const GraphPtr& inner : subgraphs_of(node)) mark_modules(*inner, structure, shared);
  }
}

}  // namespace

void write_pt2_file(Graph& graph, const Model& origin, const std::string& path, const ConvertOptions& options) {
  in_context([&] { return "writing " + path; },
             [&] {
               const python::Structure structure = python::recover_structure(graph, {});
               mark_modules(graph, structure, shared_modules(structure));
               std::vector<Pt2State> state = adopt_state(graph, structure);
               join_equal(graph, state);
               to_exported(graph);
               expect_dialect(graph, Dialect::Exported);
               mark_others(graph);
               Pt2Options pt2;
               for (const Value* output : origin.graph->outputs()) pt2.output_names.push_back(output->name);
               for (const DynamicDim& dim : options.dynamic) pt2.ranges[dim.name] = {dim.low, dim.high};
               pt2.progress = options.progress;
               write_pt2(graph, state, path, pt2);
             });
}

namespace {

ScriptParts script_parts(Graph& graph, const python::Structure& structure) {
  ScriptParts parts;
  for (const python::RootTensor& tensor : structure.tensors) {
    if (tensor.value->type.kind == Type::Kind::Opaque) continue;  // a random generator
    parts.tensors.push_back({tensor.name, tensor.value, false, tensor.value->trainable});
  }
  for (const python::Submodule& module : structure.modules) {
    ScriptModule& script = parts.modules.emplace_back(ScriptModule{module.name, module.spec.type, {}});
    for (const ModuleSpec::Weight& weight : module.spec.weights) {
      Value* value = weight.transposed ? turned(graph, weight.value) : weight.value;
      script.tensors.push_back({weight.attribute, value, weight.transposed, !weight.attribute.starts_with("running_")});
    }
  }
  parts.module_of = structure.module_of;
  return parts;
}

}  // namespace

void write_torchscript_file(Graph& graph, const std::vector<std::string>& output_names, const std::string& path,
                            const ConvertOptions& options) {
  in_context([&] { return "writing " + path; },
             [&] {
               ScriptParts parts = script_parts(graph, python::recover_structure(graph, {}));
               parts.output_names = output_names;
               infer_aten_types(graph, "a");
               rewrite_functions(graph);
               remove_unused_nodes(graph);
               write_torchscript(graph, parts, path, options.progress);
             });
}

}  // namespace tonnx
