// scopes.cpp - finds the place of each node.
#include "modules/scopes.h"

#include <algorithm>
#include <unordered_set>

#include "base/join.h"
#include "ops/frame/python_names.h"

namespace tonnx {
namespace {

constexpr int kNowhere = -1;
constexpr size_t kSparse = 8, kFewHoles = 64;  // a list has no more places for each member, and so many beside
constexpr int kRounds = 8;                     // nodes move out of so many places at most

Path split_dots(const std::string& path) {
  Path parts;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('.', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

void note_inside(const Graph& graph, int outer, std::unordered_map<const Node*, int>& result) {
  for (const Node& node : graph) {
    result.emplace(&node, outer);
    for (const GraphPtr& inner : subgraphs_of(node)) note_inside(*inner, outer, result);
  }
}

}  // namespace

Scopes::Scopes(const ModuleTree& tree) {
  scopes_.emplace_back();
  by_name_.emplace_back();
  for (size_t i = 0; i < tree.external_names.size(); ++i) {
    externals_.push_back(add_path(tree.external_names[i], 0));
    scopes_[static_cast<size_t>(externals_.back())].external = static_cast<int>(i);
  }
  for (size_t i = 0; i < tree.submodules.size(); ++i) {
    layers_.push_back(add_path(tree.submodules[i].name, 0));
    scopes_[static_cast<size_t>(layers_.back())].layer = static_cast<int>(i);
  }
  for (size_t i = 0; i < tree.tensors.size(); ++i) {
    tensors_.push_back(add_path(tree.tensors[i].name, 1));
    scopes_[static_cast<size_t>(tensors_.back())].tensors.push_back(i);
  }
}

int Scopes::child(int parent, const std::string& name) const {
  const auto& names = by_name_[static_cast<size_t>(parent)];
  const auto at = names.find(name);
  return at == names.end() ? kNowhere : at->second;
}

int Scopes::add(int parent, const std::string& name) {
  if (const int known = child(parent, name); known != kNowhere) return known;
  const int made = count();
  scopes_.push_back({.name = name, .parent = parent, .depth = (*this)[parent].depth + 1});
  by_name_.emplace_back();
  by_name_[static_cast<size_t>(parent)][name] = made;
  scopes_[static_cast<size_t>(parent)].children.push_back(made);
  return made;
}

int Scopes::add_path(const std::string& path, size_t without_last) {
  const Path parts = split_dots(path);
  int scope = 0;
  for (size_t i = 0; i + without_last < parts.size(); ++i) scope = add(scope, parts[i]);
  return scope;
}

std::string Scopes::path_of(int scope) const {
  std::string path = (*this)[scope].name;
  for (int around = (*this)[scope].parent; around > 0; around = (*this)[around].parent)
    path = (*this)[around].name + "." + path;
  return path;
}

bool Scopes::is_within(int scope, int outer) const { return common(scope, outer) == outer; }

bool Scopes::is_list(int scope) const {
  const Scope& each = (*this)[scope];
  if (each.children.empty() || !each.tensors.empty()) return false;
  size_t most = 0;
  for (const int child : each.children) {
    const std::string& name = (*this)[child].name;
    if (!is_index(name)) return false;
    most = std::max(most, static_cast<size_t>(std::stoul(name)));
  }
  return most < kSparse * each.children.size() + kFewHoles;
}

int Scopes::common(int a, int b) const {
  while ((*this)[a].depth > (*this)[b].depth) a = (*this)[a].parent;
  while ((*this)[b].depth > (*this)[a].depth) b = (*this)[b].parent;
  while (a != b) {
    a = (*this)[a].parent;
    b = (*this)[b].parent;
  }
  return a;
}

int Scopes::find(const Path& path) const {
  int scope = 0;
  for (const std::string& part : path) {
    const int next = child(scope, part);
    if (next == kNowhere || (*this)[next].is_leaf()) break;
    scope = next;
  }
  return scope;
}

NodeNumbers::NodeNumbers(const Graph& graph) {
  for (const Node& node : graph) nodes_.push_back(&node);
  numbers_.reserve(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    numbers_.emplace(nodes_[i], static_cast<int>(i));
    for (const GraphPtr& inner : subgraphs_of(*nodes_[i])) note_inside(*inner, static_cast<int>(i), numbers_);
  }
}

int NodeNumbers::find(const Node* node) const {
  if (node == nullptr) return kElsewhere;
  const auto at = numbers_.find(node);
  return at == numbers_.end() ? kElsewhere : at->second;
}

namespace {

class PlaceFinder {
 public:
  PlaceFinder(const Graph& graph, const NodeNumbers& numbers, const ModuleTree& tree, const Scopes& scopes, int root)
      : graph_(graph), numbers_(numbers), tree_(tree), scopes_(scopes), root_(root) {
    for (size_t i = 0; i < tree.tensors.size(); ++i) {
      tensor_at_[tree.tensors[i].value] = scopes.of_tensor(i);
      if (tree.tensors[i].is_key) keys_.insert(tree.tensors[i].value);
    }
  }

  std::vector<int> run() {
    for (const Node* node : numbers_.nodes()) {
      const bool has_graphs = !subgraphs_of(*node).empty();
      const auto layer = tree_.submodule_of.find(node);
      if (layer != tree_.submodule_of.end() && !has_graphs) {
        result_.push_back(scopes_[scopes_.of_layer(layer->second)].parent);
        continue;
      }
      int place = named_place(*node);
      if (const int inside = place_inside(*node, place); inside != kNowhere)
        place = place == kNowhere || has_graphs ? common_or(place, inside) : inside;
      result_.push_back(place);
    }
    for (size_t i = result_.size(); i-- > 0;) {
      const Node& node = *numbers_.nodes()[i];
      if (result_[i] == kNowhere || has_only_constants(node)) result_[i] = place_of_uses(node);
    }
    for (int round = 0; round < kRounds && move_out(); ++round) {
    }
    for (int& place : result_) {
      if (!scopes_.is_within(place, root_)) place = root_;
    }
    return std::move(result_);
  }

 private:
  int common_or(int a, int b) const { return a == kNowhere ? b : b == kNowhere ? a : scopes_.common(a, b); }

  /// Nodes of a program of PyTorch's are called as the modules that they are in.
  static bool has_module_stack(const Node& node) {
    return std::any_of(node.metadata.begin(), node.metadata.end(),
                       [](const auto& note) { return note.first == "nn_module_stack"; });
  }

  /// Where the name of the node says.
  int named_place(const Node& node) const {
    if (const auto known = tree_.places.find(&node); known != tree_.places.end())
      return scopes_.find(split_dots(known->second));
    const std::string path = python::path_of_node(node.name);
    const bool is_word = path.find_first_of("./") == std::string::npos && node.name.find('/') == std::string::npos;
    if (is_word && (path.empty() || !has_module_stack(node))) return kNowhere;
    Path parts = path_of_name(path);
    if (parts.size() < tree_.outer_parts) return 0;
    parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(tree_.outer_parts));
    return scopes_.find(parts);
  }

  /// Around the layers that it calls; elsewhere, around the tensors that it has.
  int place_inside(const Node& node, int named) const {
    int place = kNowhere;
    visit(node, [&](const Node& each) {
      if (const auto layer = tree_.submodule_of.find(&each); layer != tree_.submodule_of.end())
        place = common_or(place, scopes_[scopes_.of_layer(layer->second)].parent);
      else if (each.domain == "tonnx" && each.op == "call_module")
        place = common_or(place, 0);
      else if (&each != &node)
        place = common_or(place, tensors_of(each));
    });
    if (place != kNowhere || named != kNowhere) return place;
    return tensors_of(node);
  }

  int tensors_of(const Node& node) const {
    int place = kNowhere;
    for (const Value* input : node.inputs()) {
      if (const auto tensor = tensor_at_.find(input); tensor != tensor_at_.end() && !python::is_made_up(input->name))
        place = common_or(place, tensor->second);
      else if (input && input->producer && is_view_of_constant(*input->producer))
        place = common_or(place, tensors_of(*input->producer));
    }
    return place;
  }

  static bool is_view_of_constant(const Node& node) {
    return node.domain == "aten" && node.op == "expand" && has_only_constants(node);
  }

  template <typename F>
  static void visit(const Node& node, const F& f) {
    f(node);
    for (const GraphPtr& inner : subgraphs_of(node)) {
      for (const Node& each : *inner) visit(each, f);
    }
  }

  static bool has_only_constants(const Node& node) {
    return !node.inputs().empty() && subgraphs_of(node).empty() &&
           std::all_of(node.inputs().begin(), node.inputs().end(),
                       [](const Value* input) { return input == nullptr || input->constant != nullptr; });
  }

  int place_of_uses(const Node& node) const {
    int place = kNowhere;
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      for (const Use& use : output->uses)
        place = common_or(place, use.user ? result_[numbers_.get(use.user)] : outer_place(use));
    }
    return place == kNowhere ? 0 : place;
  }

  /// Of what a graph gives: that of the node which the graph belongs to.
  int outer_place(const Use& use) const {
    const Node* owner = use.output_of ? use.output_of->owner : nullptr;
    return owner && use.output_of != &graph_ ? result_[numbers_.get(owner)] : root_;
  }

  /// What depends on nothing of its place but on what comes in, and is used elsewhere, is computed around both.
  bool move_out() {
    std::vector<bool> is_free;  // it needs nothing of its place
    for (size_t i = 0; i < result_.size(); ++i) is_free.push_back(needs_nothing(i, is_free));
    bool moved = false;
    for (size_t i = result_.size(); i-- > 0;) {
      if (!is_free[i]) continue;
      const int place = result_[i], around = scopes_.common(place, place_of_uses(*numbers_.nodes()[i]));
      if (around == place) continue;
      result_[i] = around;
      moved = true;
    }
    return moved;
  }

  /// Rows of a table, as of relative positions: the first of several layers may have what all of them use.
  bool looks_up(const Node& node) const {
    const auto layer = tree_.submodule_of.find(&node);
    if (layer != tree_.submodule_of.end()) return tree_.submodules[layer->second].spec.type == "nn.Embedding";
    return node.domain == "aten" && (node.op == "index" || node.op == "embedding");
  }

  /// Whether the node does, where it is known of those before it.
  bool needs_nothing(size_t number, const std::vector<bool>& is_free) const {
    const Node& node = *numbers_.nodes()[number];
    const int place = result_[number];
    const bool is_lookup = looks_up(node);
    if (place == 0 || (tree_.submodule_of.contains(&node) && !is_lookup) || !subgraphs_of(node).empty()) return false;
    return std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
      if (input == nullptr) return true;
      if (input->constant)
        return is_lookup || !keys_.contains(input) || !scopes_.is_within(tensor_at_.at(input), place);
      if (input->producer == nullptr || input->producer->graph != &graph_) return true;
      const size_t producer = numbers_.get(input->producer);
      return !scopes_.is_within(result_[producer], place) || is_free[producer];
    });
  }

  const Graph& graph_;
  const NodeNumbers& numbers_;
  const ModuleTree& tree_;
  const Scopes& scopes_;
  int root_;
  std::unordered_map<const Value*, int> tensor_at_;
  std::unordered_set<const Value*> keys_;  // the tensors that have to be where they are
  std::vector<int> result_;                // for each node
};

}  // namespace

std::vector<int> places_of_nodes(const Graph& graph, const NodeNumbers& numbers, const ModuleTree& tree,
                                 const Scopes& scopes, int root) {
  return PlaceFinder(graph, numbers, tree, scopes, root).run();
}

}  // namespace tonnx
