// modules.cpp - a model as modules inside modules, for the interface.
#include <unordered_map>

#include "api/internal.h"
#include "modules/outline.h"

namespace tonnx::v1 {
namespace {

std::string name_of_node(const core::Node& node) {
  return node.name.empty() ? node.domain.str() + "::" + node.op.str() : node.name;
}

std::string type_of(const core::ModulePart& part) {
  switch (part.kind) {
    case core::ModulePart::Kind::Sequential: return "nn.Sequential";
    case core::ModulePart::Kind::List: return "nn.ModuleList";
    case core::ModulePart::Kind::Dict: return "nn.ModuleDict";
    default: return part.class_name;
  }
}

/// Several nodes of the program can be made of one node of the model.
void add_once(std::vector<std::string>& names, std::string name) {
  if (names.empty() || names.back() != name) names.push_back(std::move(name));
}

class Modules {
 public:
  Modules(const core::Graph& graph, const core::ModuleTree& tree) : tree_(tree) { note_calls(graph); }

  ModuleInfo info_of(const core::ModulePart& part, const std::string& name, const std::string& path) {
    ModuleInfo info;
    info.name = name;
    info.path = path;
    info.type = type_of(part);
    add_nodes(part, info.nodes);
    for (const auto& other : part.others) add_nodes(*other, info.nodes);
    for (const core::Member& member : part.members) add_member(member, info);
    return info;
  }

 private:
  /// Which nodes call which layer of PyTorch's.
  void note_calls(const core::Graph& graph) {
    for (const core::Node& node : graph) {
      if (const auto at = tree_.submodule_of.find(&node); at != tree_.submodule_of.end())
        add_once(callers_[&tree_.submodules[at->second]], name_of_node(node));
      for (const core::GraphPtr& inner : core::subgraphs_of(node)) note_calls(*inner);
    }
  }

  static void add_nodes(const core::Method& method, std::vector<std::string>& names) {
    if (method.graph) add_nodes(*method.graph, method.calls, names);
  }

  /// Those that the module computes itself.
  static void add_nodes(const core::Graph& graph, const core::ModuleTree& calls, std::vector<std::string>& names) {
    for (const core::Node& node : graph) {
      if (!core::is_call_part(node) && !calls.submodule_of.contains(&node)) add_once(names, name_of_node(node));
      for (const core::GraphPtr& inner : core::subgraphs_of(node)) add_nodes(*inner, calls, names);
    }
  }

  void add_member(const core::Member& member, ModuleInfo& info) {
    const std::string path = info.path.empty() ? member.name : info.path + "." + member.name;
    if (member.tensor != nullptr) {
      if (!core::is_generator(*member.tensor)) info.keys.push_back(path);
      return;
    }
    if (member.part) {
      info.children.push_back(info_of(*member.part, member.name, path));
      return;
    }
    ModuleInfo child;
    child.name = member.name;
    child.path = path;
    if (member.layer != nullptr) {
      child.type = member.layer->spec.type;
      child.arguments = member.layer->spec.arguments;
      for (const core::StateEntry& entry : member.layer->state) child.keys.push_back(path + "." + entry.name);
      child.nodes = callers_[member.layer];
    } else {
      const size_t bracket = member.plain.find('(');
      child.type = member.plain.substr(0, bracket);
      if (bracket != std::string::npos && member.plain.back() == ')')
        child.arguments = member.plain.substr(bracket + 1, member.plain.size() - bracket - 2);
    }
    info.children.push_back(std::move(child));
  }

  const core::ModuleTree& tree_;
  std::unordered_map<const core::Submodule*, std::vector<std::string>> callers_;
};

}  // namespace

ModuleInfo Model::modules(const WriteOptions& options) const {
  return translated([&] {
    const ModelBudget budget(*content_);
    Conversion conversion(*content_, core_of(options));
    const core::ModuleTree tree = conversion.compilation.modules();
    const core::Graph& graph = *conversion.compilation.graph();
    Modules modules(graph, tree);
    return modules.info_of(*core::outline(graph, tree), {}, {});
  });
}

}  // namespace tonnx::v1
