// structure.cpp - recognises nn modules in the aten graph and names everything that has state.
#include "formats/python/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace tonnx::python {
namespace {

class Recovery {
 public:
  Recovery(const Graph& graph, const PythonOptions& options) : graph_(graph), options_(options) {
    for (const std::string& name : module_attributes()) names_.reserve(name);
  }

  Structure run() {
    for (const Node& node : graph_) {
      if (node.domain == Symbol("tonnx") && node.op == Symbol("call_module")) {
        add_external(node);
      } else {
        add_module(node);
      }
    }
    for (const Value* value : graph_.initializers()) {
      if (!value->uses.empty() && !result_.place.contains(value)) add_root_tensor(value);
    }
    for (const RootTensor& tensor : result_.tensors) {
      result_.state.push_back({tensor.name, tensor.value->constant, false, tensor.value->trainable});
    }
    for (const Submodule& module : result_.modules) {
      for (const ModuleSpec::Weight& weight : module.spec.weights) {
        const bool trainable = !weight.attribute.starts_with("running_");
        result_.state.push_back({module.name + "." + weight.attribute, weight.value->constant, weight.transposed, trainable});
      }
    }
    for (size_t i = 0; i < result_.external_names.size() && i < options_.external.size(); ++i) {
      for (const StateTensor& tensor : options_.external[i].state) {
        result_.state.push_back({result_.external_names[i] + "." + tensor.name, tensor.tensor, false, tensor.trainable});
      }
    }
    return std::move(result_);
  }

 private:
  void add_external(const Node& node) {
    std::string wish = identifier(path_of_node(node.name));
    if (wish.empty()) wish = "custom";
    result_.external_names.push_back(names_.add(wish));
  }

  void add_module(const Node& node) {
    const AtenOpEntry& entry = get_aten_op(node);
    if (entry.op->module == nullptr) return;
    const Emission emission(node, entry, [](const Value*, int) { return std::string(); });
    auto spec = entry.op->module(emission);
    if (!spec) return;
    std::string key = spec->type + "(" + spec->arguments + ")";
    for (const ModuleSpec::Weight& weight : spec->weights) {
      key += fmt::format(" {}={}{}", weight.attribute, static_cast<const void*>(weight.value), weight.transposed ? "T" : "");
    }
    if (!spec->weights.empty()) {  // one without weights is not shared: each place has its own
      if (const auto same = by_key_.find(key); same != by_key_.end()) {
        result_.module_of[&node] = same->second;
        return;
      }
    }
    const bool owned = std::any_of(spec->weights.begin(), spec->weights.end(),
                                   [&](const ModuleSpec::Weight& weight) { return result_.place.contains(weight.value); });
    if (owned) return;  // its weight belongs to another module: the function is called with it
    const std::string name = names_.add(wish_for(node, *spec));
    for (const ModuleSpec::Weight& weight : spec->weights) {
      result_.place[weight.value] = fmt::format("self.{}.{}{}", name, weight.attribute, weight.transposed ? ".t()" : "");
    }
    by_key_[key] = result_.modules.size();
    result_.module_of[&node] = result_.modules.size();
    result_.modules.push_back({name, std::move(*spec)});
  }

  std::string wish_for(const Node& node, const ModuleSpec& spec) {
    for (const ModuleSpec::Weight& weight : spec.weights) {
      if (weight.attribute != "weight") continue;
      const std::string name = identifier(path_of_weight(weight.value->name));
      if (!name.empty()) return name;
    }
    const std::string name = identifier(path_of_node(node.name));
    if (!name.empty()) return name;
    return fmt::format("{}{}", spec.short_name, ++numbers_[spec.short_name]);
  }

  void add_root_tensor(const Value* value) {
    std::string wish = is_made_up(value->name) ? "" : identifier(path_of_node(value->name));
    if (wish.empty()) {  // named after the place where it is used
      const Node* user = value->uses[0].user;
      const std::string path = user ? identifier(path_of_node(user->name)) : "";
      wish = fmt::format("{}{}{}", path, path.empty() ? "" : "_", value->trainable ? "weight" : "constant");
    }
    const std::string name = names_.add(wish);
    result_.tensors.push_back({name, value});
    result_.place[value] = "self." + name;
  }

  const Graph& graph_;
  const PythonOptions& options_;
  Structure result_;
  NameSet names_;
  std::map<std::string, size_t> by_key_;
  std::map<std::string, int> numbers_;
};

}  // namespace

Structure recover_structure(const Graph& graph, const PythonOptions& options) { return Recovery(graph, options).run(); }

}  // namespace tonnx::python
