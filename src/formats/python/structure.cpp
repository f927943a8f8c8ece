// structure.cpp - recognises nn modules in the aten graph and names everything that has state.
#include "formats/python/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_set>

#include "base/error.h"

namespace tonnx::python {
namespace {

/// What a tensor without a name of its own is there for. Quantised weights have a scale and a zero point.
std::string_view role_of(const Value& value) {
  for (const std::string_view role : {"scale", "zero_point"}) {
    if (value.name.ends_with(role)) return role;
  }
  return value.trainable ? "weight" : "constant";
}

class Recovery {
 public:
  Recovery(const Graph& graph, const PythonOptions& options) : graph_(graph), options_(options) {
    for (const std::string& name : module_attributes()) names_.reserve(name);
  }

  Structure run() {
    walk(graph_);
    for (const Value* value : graph_.initializers()) {
      if (!value->uses.empty() && !owned_.contains(value)) add_root_tensor(value);
    }
    give_names();
    list_state();
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
        result_.module_of[&node] = same->second;
        return;
      }
    }
    const bool owned = std::any_of(spec->weights.begin(), spec->weights.end(),
                                   [&](const ModuleSpec::Weight& weight) { return owned_.contains(weight.value); });
    if (owned) return;  // its weight belongs to another module: the function is called with it
    for (const ModuleSpec::Weight& weight : spec->weights) owned_.insert(weight.value);
    by_key_[key] = result_.modules.size();
    result_.module_of[&node] = result_.modules.size();
    result_.modules.push_back({path_for(node, *spec), std::move(*spec)});
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

  void add_root_tensor(const Value* value) {
    std::string path = is_made_up(value->name) ? "" : path_of_node(value->name);
    if (identifier(path).empty()) {  // named after the place where it is used
      const Node* user = value->uses[0].user;
      path = user ? path_of_node(user->name) : "";
      path += fmt::format("{}{}", path.empty() ? "" : ".", role_of(*value));
    }
    result_.tensors.push_back({path, value});
  }

  /// The part that all paths begin with, such as the name of the network; none where they are those of a PyTorch model,
  /// whose dots say what belongs together.
  std::string common_prefix() const {
    std::vector<std::string> names;
    const auto add = [&](const std::string& path) {
      if (!path.empty()) names.push_back(path.find('.') == std::string::npos ? identifier(path) : "");
    };
    for (const Submodule& module : result_.modules) add(module.name);
    for (const RootTensor& tensor : result_.tensors) add(tensor.name);
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
      std::string wish = identifier(path);
      if (!prefix.empty() && wish.starts_with(prefix)) wish = identifier(wish.substr(prefix.size()));
      if (wish.empty()) wish = fmt::format("{}{}", otherwise, ++numbers_[otherwise]);
      return names_.add(wish);
    };
    for (Submodule& module : result_.modules) {
      module.name = name_of(module.name, module.spec.short_name);
      for (const ModuleSpec::Weight& weight : module.spec.weights) {
        result_.place[weight.value] =
            fmt::format("self.{}.{}{}", module.name, weight.attribute, weight.transposed ? ".t()" : "");
      }
    }
    for (std::string& name : result_.external_names) name = name_of(name, "custom");
    for (RootTensor& tensor : result_.tensors) {
      tensor.name = name_of(tensor.name, "constant");
      result_.place[tensor.value] = "self." + tensor.name;
    }
  }

  void list_state() {
    for (const RootTensor& tensor : result_.tensors) {
      if (tensor.value->type.kind == Type::Kind::Opaque) continue;
      result_.state.push_back({tensor.name, tensor.value->constant, false, tensor.value->trainable});
    }
    for (const Submodule& module : result_.modules) {
      for (const ModuleSpec::Weight& weight : module.spec.weights) {
        const bool trainable = !weight.attribute.starts_with("running_");
        result_.state.push_back(
            {module.name + "." + weight.attribute, weight.value->constant, weight.transposed, trainable});
      }
    }
    for (size_t i = 0; i < result_.external_names.size() && i < options_.external.size(); ++i) {
      for (const StateTensor& tensor : options_.external[i].state) {
        result_.state.push_back(
            {result_.external_names[i] + "." + tensor.name, tensor.tensor, false, tensor.trainable});
      }
    }
  }

  const Graph& graph_;
  const PythonOptions& options_;
  Structure result_;
  NameSet names_;
  std::unordered_set<const Value*> owned_;  // the weights of submodules
  std::map<std::string, size_t> by_key_;
  std::map<std::string, int> numbers_;
};

}  // namespace

Structure recover_structure(const Graph& graph, const PythonOptions& options) { return Recovery(graph, options).run(); }

}  // namespace tonnx::python
