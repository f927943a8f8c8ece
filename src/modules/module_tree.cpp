// module_tree.cpp - recognises nn modules in the aten graph and names everything that has state.
#include "modules/module_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/join.h"
#include "modules/places.h"
#include "modules/word_paths.h"
#include "ops/frame/python_names.h"

namespace tonnx {
namespace {

using python::identifier, python::is_made_up, python::is_state_key, python::path_of_node, python::path_of_weight;

/// The path that a node's name says, with dots between the names that PyTorch has, and else with slashes.
std::string place_of_node(std::string_view node_name) {
  std::string path = path_of_node(node_name);
  const bool has_slashes = !node_name.starts_with('/') && node_name.find('/') != std::string_view::npos;
  if (has_slashes) std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

/// What a tensor without a name of its own is there for. Quantised weights have a scale and a zero point.
std::string_view role_of(const Value& value) {
  for (const std::string_view role : {"scale", "zero_point"}) {
    if (value.name.ends_with(role)) return role;
  }
  return value.trainable ? "weight" : "constant";
}

class TreeFinder {
 public:
  TreeFinder(const Graph& graph, TreeNames naming) : graph_(graph), naming_(naming) {
    names_.reserve_module_attributes();
  }

  ModuleTree run() {
    walk(graph_);
    for (Value* value : graph_.initializers()) {
      if (!value->uses.empty() && !owned_.contains(value)) add_root_tensor(value);
    }
    if (naming_ == TreeNames::Flat)
      give_flat_names();
    else
      give_paths();
    return std::move(result_);
  }

 private:
  void walk(const Graph& graph) {
    for (const Node& node : graph) {
      if (node.domain == "tonnx" && node.op == "call_module") {
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
    if (naming_ == TreeNames::Nested && is_bare_table(*spec)) return;
    if (naming_ == TreeNames::Nested && names_a_part(*spec)) return note_parts(*spec);
    const bool owned = std::any_of(spec->weights.begin(), spec->weights.end(),
                                   [&](const ModuleSpec::Weight& weight) { return owned_.contains(weight.value); });
    if (owned) return borrow(node, *spec);
    for (const ModuleSpec::Weight& weight : spec->weights) owned_.emplace(weight.value, result_.submodules.size());
    by_key_[key] = result_.submodules.size();
    result_.submodule_of[&node] = result_.submodules.size();
    Submodule submodule{path_for(node, *spec), std::move(*spec), {}};
    submodule.is_key = is_key(submodule.name, node);
    for (ModuleSpec::Weight& weight : std::exchange(submodule.spec.weights, {})) {
      const bool trainable = !weight.attribute.starts_with("running_") && weight.attribute != "scale" &&
                             is_float(weight.value->constant->dtype);
      submodule.state.push_back({std::move(weight.attribute), weight.value, weight.transposed, trainable});
    }
    result_.submodules.push_back(std::move(submodule));
  }

  /// Its weight belongs to another module: the function is called with it, but where it is a module that shares it.
  void borrow(const Node& node, ModuleSpec& spec) {
    if (naming_ == TreeNames::Flat || spec.weights.size() != 1) return;
    const size_t owner = owned_.at(spec.weights[0].value);
    result_.borrowers.push_back({&node, std::move(spec), owner});
  }

  /// `in_proj_weight` is a parameter of the module around, and not the weight of a layer of its own. But `conv.weight`
  /// is, whatever stands beside it.
  static bool names_a_part(const ModuleSpec& spec) {
    if (std::any_of(spec.weights.begin(), spec.weights.end(), [](const ModuleSpec::Weight& weight) {
          return weight.attribute == "weight" && weight.value->name.ends_with(".weight");
        }))
      return false;
    return std::any_of(spec.weights.begin(), spec.weights.end(), [](const ModuleSpec::Weight& weight) {
      const std::string& name = weight.value->name;
      const size_t dot = name.rfind('.');
      return dot != std::string::npos && name.substr(dot + 1).ends_with("_" + weight.attribute);
    });
  }

  /// `relative_position_bias_table` is a parameter that rows are taken of, and no nn.Embedding.
  static bool is_bare_table(const ModuleSpec& spec) {
    return spec.type == "nn.Embedding" && spec.weights.size() == 1 && is_state_key(spec.weights[0].value->name) &&
           !spec.weights[0].value->name.ends_with(".weight");
  }

  /// A weight without a name is called like the bias beside it, and is stored as a layer would have it.
  void note_parts(const ModuleSpec& spec) {
    std::string base;
    for (const ModuleSpec::Weight& weight : spec.weights) {
      const std::string& name = weight.value->name;
      if (base.empty() && name.ends_with("_" + weight.attribute))
        base = name.substr(0, name.size() - weight.attribute.size());
    }
    for (const ModuleSpec::Weight& weight : spec.weights) {
      const std::string& name = weight.value->name;
      parts_.try_emplace(weight.value, is_made_up(name) ? base + weight.attribute : name, weight.transposed);
    }
  }

  /// What the module is called in the model: empty where nothing says so.
  static std::string path_for(const Node& node, const ModuleSpec& spec) {
    for (const ModuleSpec::Weight& weight : spec.weights) {  // conv.bias, beside a weight without a name
      const std::string& name = weight.value->name;
      if (is_state_key(name) && name.ends_with("." + weight.attribute))
        return name.substr(0, name.size() - weight.attribute.size() - 1);
    }
    for (const ModuleSpec::Weight& weight : spec.weights) {
      if (weight.attribute != "weight") continue;
      const std::string path = path_of_weight(weight.value->name);
      if (!identifier(path).empty()) return path;
    }
    return place_of_node(node.name);
  }

  void add_root_tensor(Value* value) {
    if (const auto part = parts_.find(value); part != parts_.end()) {
      result_.tensors.push_back({part->second.first, value, part->second.second, value->trainable, true});
      return;
    }
    const std::string& name = value->name;
    std::string path = is_made_up(name) ? "" : place_of_node(name);
    const bool is_of_node = naming_ == TreeNames::Nested && name.starts_with('/');  // which gives it
    if (is_of_node || identifier(path).empty()) {  // named after the place where it is used
      const Node* user = value->uses[0].user;
      if (!is_of_node) path = user ? place_of_node(user->name) : "";
      const bool has_slashes = path.find('/') != std::string::npos;
      path += fmt::format("{}{}", path.empty() ? "" : has_slashes ? "/" : ".", role_of(*value));
    }
    result_.tensors.push_back({path, value, false, value->trainable, is_state_key(name)});
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

  /// As `StatefulPartitionedCall/model`: what all names between slashes begin with says nothing.
  static size_t common_parts(const std::vector<std::pair<std::string, Path>>& named) {
    std::optional<Path> common;
    for (const auto& [name, path] : named) {
      if (path.empty()) continue;
      if (name.find('/') == std::string::npos) return 0;
      const Path around(path.begin(), path.end() - 1);
      if (!common) common = around;
      const auto differ = std::mismatch(common->begin(), common->end(), around.begin(), around.end());
      common->erase(differ.first, common->end());
    }
    return common ? common->size() : 0;
  }

  /// A path with dots, or out of a node's name as PyTorch's exporter gives it: `/layer1/conv/Conv`.
  static bool is_key(const std::string& path, const Node& node) {
    return path.find_first_of("/:") == std::string::npos &&
           (path.find('.') != std::string::npos || node.name.starts_with('/'));
  }

  void give_paths() {
    std::vector<std::pair<std::string, Path>> named;
    for (const Submodule& module : result_.submodules) named.emplace_back(module.name, path_of_name(module.name));
    for (const StateEntry& tensor : result_.tensors) named.emplace_back(tensor.name, path_of_name(tensor.name));
    const size_t common = result_.outer_parts = common_parts(named);
    const std::string prefix = common == 0 ? common_prefix() : "";
    Places places;
    const auto without_prefix = [&](const std::string& name) {
      return !prefix.empty() && name.starts_with(prefix) ? identifier(name.substr(prefix.size())) : name;
    };
    std::vector<std::string> words;
    for (size_t i = 0; i < result_.submodules.size(); ++i) {
      if (named[i].second.size() == 1) words.push_back(without_prefix(named[i].second[0]));
    }
    const WordPaths word_paths(words);
    note_places(word_paths, without_prefix);
    const auto path_of = [&](Path path, const std::string& otherwise) {
      path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(std::min(common, path.size())));
      if (path.size() == 1) path = word_paths.split(without_prefix(path[0]));
      if (path.empty() || path.back().empty()) path = {fmt::format("{}{}", otherwise, ++numbers_[otherwise])};
      return joined(places.add(std::move(path)), ".");
    };
    for (std::string& name : result_.external_names) name = path_of({identifier(name)}, "custom");
    for (size_t i = 0; i < result_.submodules.size(); ++i)
      result_.submodules[i].name = path_of(named[i].second, result_.submodules[i].spec.short_name);
    const auto name_tensor = [&](size_t i) {
      Path path = named[result_.submodules.size() + i].second;
      if (!path.empty()) path.back() = is_index(path.back()) ? "n" + path.back() : identifier(path.back());
      if (!result_.tensors[i].is_key) {
        const Path outer(path.begin(), path.begin() + static_cast<ptrdiff_t>(std::min(common, path.size())));
        path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(outer.size()));
        path = places.within_known(std::move(path));
        if (places.is_scope(path)) path.emplace_back(role_of(*result_.tensors[i].value));
        path.insert(path.begin(), outer.begin(), outer.end());
      }
      result_.tensors[i].name = path_of(std::move(path), "constant");
    };
    for (size_t i = 0; i < result_.tensors.size(); ++i) {
      if (result_.tensors[i].is_key) name_tensor(i);
    }
    for (size_t i = 0; i < result_.tensors.size(); ++i) {
      if (!result_.tensors[i].is_key) name_tensor(i);
    }
  }

  /// Where nodes are, after names that are words alone.
  void note_places(const WordPaths& word_paths, const std::function<std::string(const std::string&)>& without_prefix) {
    for (const Node& node : graph_) {
      if (node.name.empty() || node.name.find_first_of("/.:") != std::string::npos ||
          result_.submodule_of.contains(&node))
        continue;
      if (const auto place = word_paths.place_of(without_prefix(identifier(node.name))))
        result_.places.emplace(&node, joined(*place, "."));
    }
  }

  void give_flat_names() {
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
  TreeNames naming_;
  ModuleTree result_;
  python::NameSet names_;
  std::unordered_map<const Value*, size_t> owned_;                        // the submodules that have weights
  std::unordered_map<const Value*, std::pair<std::string, bool>> parts_;  // their names; whether they are turned
  std::map<std::string, size_t> by_key_;
  std::map<std::string, int> numbers_;
};

}  // namespace

bool is_generator(const StateEntry& entry) { return entry.value->type.kind == Type::Kind::Opaque; }

ModuleTree find_module_tree(const Graph& graph, TreeNames naming) { return TreeFinder(graph, naming).run(); }

std::string_view called_by(const Node& node, const ModuleTree& tree) {
  const auto at = tree.submodule_of.find(&node);
  return at == tree.submodule_of.end() ? std::string_view() : tree.submodules[at->second].name;
}

std::string class_note(std::string_view path) { return fmt::format("class of {}", path); }

std::vector<StateEntry> state_of(const ModuleTree& tree) {
  std::vector<StateEntry> state;
  for (const StateEntry& tensor : tree.tensors) {
    if (!is_generator(tensor)) state.push_back(tensor);
  }
  for (const Submodule& module : tree.submodules) {
    if (module.tied_to >= 0) continue;
    for (const StateEntry& entry : module.state)
      state.push_back({module.name + "." + entry.name, entry.value, entry.transposed, entry.trainable});
  }
  return state;
}

}  // namespace tonnx
