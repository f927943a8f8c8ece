// arrange.cpp - settles where modules and constants are that have no place in PyTorch.
#include <algorithm>

#include "base/join.h"
#include "modules/bodies.h"
#include "modules/outline.h"
#include "modules/tree_steps.h"
#include "ops/frame/trained_scalar.h"

namespace tonnx {
namespace {

/// Where all nodes that use the tensor are; -1 where some are in a branch or loop.
int place_of_users(const StateEntry& tensor, const NodeNumbers& numbers, const std::vector<int>& places,
                   const Scopes& scopes) {
  int place = -1;
  for (const Use& use : tensor.value->uses) {
    if (use.user && numbers.nodes()[numbers.get(use.user)] != use.user) return -1;
    const int at = use.user ? places[numbers.get(use.user)] : 0;
    place = place < 0 ? at : scopes.common(place, at);
  }
  return place;
}

/// `constant` of `constant_2`, which are numbered anew where they come to.
std::string without_number(const std::string& name) {
  const std::string stem = stem_of(name);
  return stem.size() > 1 && stem.size() < name.size() && stem.ends_with('_') ? stem.substr(0, stem.size() - 1) : name;
}

/// A mask or the like that an exporter computed: its name says what it is, and not where.
bool is_of_nowhere(const StateEntry& tensor) {
  return !tensor.is_key && !tensor.trainable && tensor.name.find('.') == std::string::npos &&
         is_result_name(tensor.value->name);
}

/// Constants that no state dict has move out of a place with the nodes that alone use them; those that have no place
/// come to them.
void move_constants(const Graph& graph, ModuleTree& tree) {
  const auto may_move = [](const StateEntry& tensor) {
    return !tensor.is_key && (tensor.name.find('.') != std::string::npos || is_of_nowhere(tensor));
  };
  if (std::none_of(tree.tensors.begin(), tree.tensors.end(), may_move)) return;
  const Scopes scopes(tree);
  const NodeNumbers numbers(graph);
  const std::vector<int> places = places_of_nodes(graph, numbers, tree, scopes, 0);
  std::vector<int> goal;  // of each tensor
  bool have_places = true;
  for (size_t i = 0; i < tree.tensors.size(); ++i) {
    const int old = scopes.of_tensor(i);
    int place = may_move(tree.tensors[i]) ? place_of_users(tree.tensors[i], numbers, places, scopes) : old;
    while (place > 0 && scopes.is_list(place)) place = scopes[place].parent;
    goal.push_back(place < 0 ? old : place);
    if (is_of_nowhere(tree.tensors[i]) && goal.back() == 0) have_places = false;  // one for several: as all are then
  }
  python::NameSet names;
  for (const Submodule& module : tree.submodules) names.reserve(module.name);
  for (const StateEntry& tensor : tree.tensors) {
    if (!may_move(tensor)) names.reserve(tensor.name);
  }
  for (size_t i = 0; i < tree.tensors.size(); ++i) {
    StateEntry& tensor = tree.tensors[i];
    if (!may_move(tensor)) continue;
    const int old = scopes.of_tensor(i);
    const bool moves = is_of_nowhere(tensor) ? have_places : scopes.is_within(old, goal[i]);
    if (is_of_nowhere(tensor) && !moves)
      tensor.name = names.add(tensor.name);
    else
      tensor.name = names.add(within(scopes.path_of(moves ? goal[i] : old), without_number(last_part(tensor.name))));
  }
}

void shorten_paths(const Graph& graph, ModuleTree& tree) {
  const auto is_fixed = [](const auto& entry) { return entry.is_key || entry.name.find('.') == std::string::npos; };
  if (std::all_of(tree.submodules.begin(), tree.submodules.end(), is_fixed) &&
      std::all_of(tree.tensors.begin(), tree.tensors.end(), is_fixed))
    return;
  const Scopes scopes(tree);
  const Bodies bodies(graph, tree, scopes);
  Places places;
  const auto add = [&](std::string& name, int scope) {
    Path path = path_of_name(name);
    while (!bodies.is_block(scope)) scope = scopes[scope].parent;
    const auto depth = static_cast<size_t>(scopes[scope].depth);
    if (depth + 1 < path.size()) join_from(path, depth);
    name = joined(places.add(std::move(path)), ".");
  };
  const auto keep = [&](std::string& name) { name = joined(places.add(path_of_name(name)), "."); };
  for (std::string& name : tree.external_names) keep(name);
  for (Submodule& module : tree.submodules) {
    if (is_fixed(module)) keep(module.name);
  }
  for (StateEntry& tensor : tree.tensors) {
    if (is_fixed(tensor)) keep(tensor.name);
  }
  for (size_t i = 0; i < tree.submodules.size(); ++i) {
    if (!is_fixed(tree.submodules[i])) add(tree.submodules[i].name, scopes[scopes.of_layer(i)].parent);
  }
  for (size_t i = 0; i < tree.tensors.size(); ++i) {
    if (!is_fixed(tree.tensors[i])) add(tree.tensors[i].name, scopes.of_tensor(i));
  }
}

}  // namespace

void arrange_modules(const Graph& graph, ModuleTree& tree) {
  move_constants(graph, tree);
  shorten_paths(graph, tree);
  find_repeats(graph, tree);
}

ModuleTree module_tree_of(const Graph& graph, TreeNames naming) {
  ModuleTree tree = find_module_tree(graph, naming);
  if (naming == TreeNames::Flat) return tree;
  tie_modules(graph, tree);
  arrange_modules(graph, tree);
  return tree;
}

}  // namespace tonnx
