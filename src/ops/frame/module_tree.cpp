// module_tree.cpp - recognises nn modules in the aten graph and names everything that has state.
#include "ops/frame/module_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "ops/frame/python_names.h"

namespace tonnx {
namespace {

using python::identifier, python::is_made_up, python::path_of_node, python::path_of_weight;

/// What a tensor without a name of its own is there for. Quantised weights have a scale and a zero point.
std::string_view role_of(const Value& value) {
  for (const std::string_view role : {"scale", "zero_point"}) {
    if (value.name.ends_with(role)) return role;
  }
  return value.trainable ? "weight" : "constant";
}

class TreeFinder {
 public:
  explicit TreeFinder(const Graph& graph) : graph_(graph) {
    for (const std::string& name : python::module_attributes()) names_.reserve(name);
  }

  ModuleTree run() {
    walk(graph_);
    for (Value* value : graph_.initializers()) {
      if (!value->uses.empty() && !owned_.contains(value)) add_root_tensor(value);
    }
    give_names();
    return std::move(result_);
  }

 private:
  void walk(const Graph& graph) {
    for (const Node& node : graph) {
      if (node.domain == Symbol("tonnx") && node.op == Symbol("call_module")) {
        add_external(node);
      } else {
        add_module(node);
      }
      for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
    }
  }

  void add_external(const Node& node) {
    const std::string path = path_of_node(node.name);
    result_.external_names.push_back(path.empty() ? "custom" : path);
  }

  void add_module(const Node& node) {
    const AtenOpEntry& entry = get_aten_op(node);
    if (entry.op->module == nullptr) return;
    const Emission emission(node, entry, [](const Value*, int) { return std::string(); });
    auto spec = entry.op->module(emission);
    if (!spec) return;
    // nn.LSTM and its kin keep a list of their weights up to date, which torch.cond and torch.while_loop do not allow
    if (node.graph != &graph_ && (spec->type == "nn.LSTM" || spec->type == "nn.GRU" || spec->type == "nn.RNN")) return;
    std::string key = spec->type + "(" + spec->arguments + ")";
    for (const ModuleSpec::Weight& weight : spec->weights) {
      key += fmt::format(" {}={}{}", weight.attribute, static_cast<const void*>(weight.value),
                         weight.transposed ? "T" : "");
    }
    if (!spec->weights.empty()) {  // one without weights is not shared: each place has its own
      if (const auto same = by_key_.find(key); same != by_key_.end()) {
        result_.submodule_of[&node] = same->second;
        return;
      }
    }
    const bool owned = std::any_of(spec->weights.begin(), spec->weights.end(),
                                   [&](const ModuleSpec::Weight& weight) { return owned_.contains(weight.value); });
    if (owned) return;  // its weight belongs to another module: the function is called with it
    for (const ModuleSpec::Weight& weight : spec->weights) owned_.insert(weight.value);
    by_key_[key] = result_.submodules.size();
    result_.submodule_of[&node] = result_.submodules.size();
    Submodule submodule{path_for(node, *spec), std::move(*spec), {}};
    for (ModuleSpec::Weight& weight : std::exchange(submodule.spec.weights, {})) {
      const bool trainable = !weight.attribute.starts_with("running_") && is_float(weight.value->constant->dtype);
      submodule.state.push_back({std::move(weight.attribute), weight.value, weight.transposed, trainable});
    }
    result_.submodules.push_back(std::move(submodule));
  }

  /// What the module is called in the model: empty where nothing says so.
  static std::string path_for(const Node& node, const ModuleSpec& spec) {
    for (const ModuleSpec::Weight& weight : spec.weights) {
      if (weight.attribute != "weight") continue;
      const std::string path = path_of_weight(weight.value->name);
      if (!identifier(path).empty()) return path;
    }
    return path_of_node(node.name);
  }

  void add_root_tensor(Value* value) {
    std::string path = is_made_up(value->name) ? "" : path_of_node(value->name);
    if (identifier(path).empty()) {  // named after the place where it is used
      const Node* user = value->uses[0].user;
      path = user ? path_of_node(user->name) : "";
      path += fmt::format("{}{}", path.empty() ? "" : ".", role_of(*value));
    }
    result_.tensors.push_back({path, value, false, value->trainable});
  }

  /// The part that all paths begin with, such as the name of the network; none where they are those of a PyTorch model,
  /// whose dots say what belongs together.
  std::string common_prefix() const {
    std::vector<std::string> names;
    const auto add = [&](const std::string& path) {
      if (!path.empty()) names.push_back(path.find('.') == std::string::npos ? identifier(path) : "");
    };
    for (const Submodule& module : result_.submodules) add(module.name);
    for (const StateEntry& tensor : result_.tensors) add(tensor.name);
    if (names.size() < 2) return "";
    std::string prefix = names[0];
    for (const std::string& name : names) {
      const auto differ = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end());
      prefix.erase(differ.first, prefix.end());
    }
    const auto leaves_a_name = [&](const std::string& name) {
      return name.size() > prefix.size() && !std::isdigit(static_cast<unsigned char>(name[prefix.size()]));
    };
    while (!prefix.empty()) {
      if (prefix.back() == '_' && std::all_of(names.begin(), names.end(), leaves_a_name)) return prefix;
      prefix.pop_back();
    }
    return "";
  }

  void give_names() {
    const std::string prefix = common_prefix();
    const auto name_of = [&](const std::string& path, const std::string& otherwise) {
      std::string hint = identifier(path);
      if (!prefix.empty() && hint.starts_with(prefix)) hint = identifier(hint.substr(prefix.size()));
      if (hint.empty()) hint = fmt::format("{}{}", otherwise, ++numbers_[otherwise]);
      return names_.add(hint);
    };
    for (Submodule& module : result_.submodules) module.name = name_of(module.name, module.spec.short_name);
    for (std::string& name : result_.external_names) name = name_of(name, "custom");
    for (StateEntry& tensor : result_.tensors) tensor.name = name_of(tensor.name, "constant");
  }

  const Graph& graph_;
  ModuleTree result_;
  python::NameSet names_;
  std::unordered_set<const Value*> owned_;  // the weights of submodules
  std::map<std::string, size_t> by_key_;
  std::map<std::string, int> numbers_;
};

}  // namespace

bool is_generator(const StateEntry& entry) { return entry.value->type.kind == Type::Kind::Opaque; }

ModuleTree find_module_tree(const Graph& graph) { return TreeFinder(graph).run(); }

std::vector<StateEntry> state_of(const ModuleTree& tree) {
  std::vector<StateEntry> state;
  for (const StateEntry& tensor : tree.tensors) {
    if (!is_generator(tensor)) state.push_back(tensor);
  }
  for (const Submodule& module : tree.submodules) {
    for (const StateEntry& entry : module.state)
      state.push_back({module.name + "." + entry.name, entry.value, entry.transposed, entry.trainable});
  }
  return state;
}

}  // namespace tonnx
