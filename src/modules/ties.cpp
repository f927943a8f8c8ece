// ties.cpp - finds modules that share a weight, of which the file holds one, or a copy that is turned around.
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/computed.h"
#include "ir/origins.h"
#include "modules/places.h"
#include "modules/tree_steps.h"
#include "ops/frame/python_names.h"

namespace tonnx {
namespace {

constexpr int64_t kFewElements = 16;  // so small that weights may be equal by chance
constexpr int kMostComputed = 8;      // weights that have to be made for it are compared

/// Whether two matrices are the same where modules have them. `b` may be computed, `a` not.
bool are_equal(const StateEntry& a, const StateEntry& b) {
  const Tensor &x = *a.value->constant, &y = *b.value->constant;
  const bool is_turned = a.transposed != b.transposed;
  if (x.dtype != y.dtype || x.data.size() != y.data.size() || is_computed(x.data) ||
      x.dims[0] != y.dims[is_turned ? 1 : 0] || x.dims[1] != y.dims[is_turned ? 0 : 1])
    return false;
  const auto width = static_cast<size_t>(info(x.dtype).bits / 8);
  const auto rows = static_cast<size_t>(y.dims[0]), columns = static_cast<size_t>(y.dims[1]);
  bool is_equal = true;
  size_t at = 0;
  const auto compare = [&](std::string_view piece) {
    for (size_t i = 0; is_equal && i < piece.size(); i += width, ++at) {
      const size_t from = is_turned ? at % columns * rows + at / columns : at;
      is_equal = std::memcmp(x.data.data() + from * width, piece.data() + i, width) == 0;
    }
  };
  if (is_computed(y.data))
    for_each_piece(y.data, compare);
  else
    compare(y.data.view());
  return is_equal;
}

/// A layer that has nothing but a matrix of floats.
bool is_matrix(const Submodule& module) {
  if (module.state.size() != 1 || module.state[0].name != "weight" || !module.state[0].trainable) return false;
  const Value& weight = *module.state[0].value;
  return weight.constant && !weight.sparse && weight.constant->dims.size() == 2 && is_float(weight.constant->dtype) &&
         info(weight.constant->dtype).bits >= 16 && weight.constant->count() >= kFewElements;
}

/// What equal matrices have in common, turned around or not: two corners stay where they are. Those of what is computed
/// are not known.
std::string looks_of(const Tensor& tensor, bool has_corners) {
  const auto width = static_cast<size_t>(info(tensor.dtype).bits / 8);
  std::string looks = std::string(name_of(tensor.dtype)) + std::to_string(tensor.data.size());
  if (!has_corners) return looks;
  const std::string_view bytes = tensor.data.view();
  return looks.append(bytes.substr(0, width)).append(bytes.substr(bytes.size() - width));
}

/// So many names are at, above and below a path.
class Occupied {
 public:
  void add(const std::string& name, int count = 1) {
    at_[name] += count;
    for (size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1))
      below_[name.substr(0, end)] += count;
  }
  bool is_free(const std::string& path) const {
    if (count(at_, path) != 0 || count(below_, path) != 0) return false;
    for (size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1)) {
      if (count(at_, path.substr(0, end)) != 0) return false;
    }
    return true;
  }

 private:
  static int count(const std::unordered_map<std::string, int>& counts, const std::string& path) {
    const auto found = counts.find(path);
    return found == counts.end() ? 0 : found->second;
  }
  std::unordered_map<std::string, int> at_, below_;
};

/// `embed` of `embed_1`.
std::string without_count(const std::string& path) {
  const size_t end = path.find_last_not_of("0123456789");
  return end != std::string::npos && end > 0 && end + 1 < path.size() && path[end] == '_' ? path.substr(0, end) : path;
}

class Ties {
 public:
  Ties(const Graph& graph, ModuleTree& tree) : tree_(tree) {
    std::vector<int> calls(tree.submodules.size());
    for (const auto& [node, module] : tree.submodule_of) calls[module] += node->graph == &graph ? 1 : 0;
    for (size_t i = 0; i < tree.submodules.size(); ++i) {
      if (calls[i] != 1 || !is_matrix(tree.submodules[i]) || is_named(i)) continue;
      const Tensor& weight = *tree.submodules[i].state[0].value->constant;
      unnamed_[looks_of(weight, !is_computed(weight.data))].push_back(i);
    }
    for (size_t i = 0; i < tree.submodules.size(); ++i) {
      if (is_matrix(tree.submodules[i]) && is_named(i) && (calls[i] > 1 || !alike(i).empty())) owners_.push_back(i);
    }
    if (!owners_.empty() || !tree.borrowers.empty()) find_places(graph);
  }

  void run() {
    for (const size_t owner : owners_) tie(owner);
    for (const Borrower& each : tree_.borrowers) lend(each);
  }

 private:
  struct Tie {
    std::string path;
    const Node* node;
    size_t module;  // that it calls now
  };

  bool is_named(size_t module) const { return python::is_state_key(tree_.submodules[module].state[0].value->name); }

  void find_places(const Graph& graph) {
    for (const Node& node : graph) {
      const std::string path = python::path_of_node(node.name);
      const bool turns_weight =
          !node.inputs().empty() && std::all_of(node.inputs().begin(), node.inputs().end(),
                                                [](const Value* input) { return input && input->constant; });
      if (turns_weight && !tree_.submodule_of.contains(&node)) continue;  // for the layer, which has it so
      for (size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1))
        ++within_[path.substr(0, end)];
      ++at_[path];
      if (const auto call = tree_.submodule_of.find(&node); call != tree_.submodule_of.end())
        calls_[call->second].emplace_back(&node, path);
    }
    for (const StateEntry& tensor : tree_.tensors) names_.add(tensor.name);
    for (const Submodule& module : tree_.submodules) names_.add(module.name);
  }

  void tie(size_t owner) {
    const std::string own = tree_.submodules[owner].name;
    std::map<std::string, Tie> ties;
    bool is_called = false;  // under its own name
    for (const auto& [node, path] : calls_[owner]) {
      // an exporter that knows a module by one name puts it into whatever calls it: `encoder.shared` is `shared`, and
      // `shared_1` is the second call of it
      const std::string first = without_count(path);
      if (path == own || last_part(first) == last_part(own) || last_part(path) == last_part(own))
        is_called = true;
      else if ((first != path && at_.contains(first)) || !is_layer(path, owner) ||
               !ties.emplace(path, Tie{path, node, owner}).second)
        return;
    }
    for (const size_t i : alike(owner)) {
      const Submodule& other = tree_.submodules[i];
      const auto& [node, path] = calls_[i][0];
      if (other.tied_to >= 0 || path == own || ties.contains(path) || !is_layer(path, i)) continue;
      if (is_computed(other.state[0].value->constant->data) && computed_left_-- <= 0) continue;
      if (are_equal(tree_.submodules[owner].state[0], other.state[0])) ties.emplace(path, Tie{path, node, i});
    }
    if (ties.size() + (is_called ? 1 : 0) < 2) return;  // another name is not another module
    for (const auto& [path, each] : ties) add(each, owner);
  }

  /// A layer that is another module than the one whose weight it has, as the name of its node says.
  void lend(const Borrower& borrower) {
    const Submodule owner = tree_.submodules[borrower.owner];
    const ModuleSpec::Weight& weight = borrower.spec.weights[0];
    const std::string path = python::path_of_node(borrower.node->name);
    if (!is_matrix(owner) || !is_named(borrower.owner) || !at_.contains(path) || path == owner.name ||
        weight.transposed != owner.state[0].transposed || !is_layer(path, borrower.owner))
      return;
    Submodule made{path, borrower.spec, owner.state, true, static_cast<int>(borrower.owner)};
    made.spec.weights.clear();
    names_.add(path);
    tree_.submodule_of[borrower.node] = tree_.submodules.size();
    tree_.submodules.push_back(std::move(made));
  }

  /// Those without names that may have the weight of this one, in the order of the tree.
  std::vector<size_t> alike(size_t owner) const {
    const Tensor& weight = *tree_.submodules[owner].state[0].value->constant;
    if (is_computed(weight.data)) return {};
    std::vector<size_t> found;
    for (const bool has_corners : {true, false}) {
      if (const auto at = unnamed_.find(looks_of(weight, has_corners)); at != unnamed_.end())
        found.insert(found.end(), at->second.begin(), at->second.end());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// Whether there is one node at the place, and nothing else but what it calls now.
  bool is_layer(const std::string& path, size_t module) {
    const Path parts = path_of_name(path);
    if (path.empty() || at_.at(path) != 1 || within_.contains(path) ||
        !std::all_of(parts.begin(), parts.end(), [](const std::string& part) { return !part.empty(); }))
      return false;
    names_.add(tree_.submodules[module].name, -1);
    const bool is_free = names_.is_free(path);
    names_.add(tree_.submodules[module].name);
    return is_free;
  }

  void add(const Tie& tie, size_t owner) {
    size_t index = tie.module;
    if (index == owner) {
      index = tree_.submodules.size();
      tree_.submodules.push_back(Submodule(tree_.submodules[owner]));
      tree_.submodule_of[tie.node] = index;
    } else {
      names_.add(tree_.submodules[index].name, -1);
      const StateEntry &kept = tree_.submodules[owner].state[0], &dropped = tree_.submodules[index].state[0];
      note_equal(kept.value->constant, dropped.value->constant, kept.transposed != dropped.transposed);
    }
    names_.add(tie.path);
    tree_.submodules[index].name = tie.path;
    tree_.submodules[index].is_key = true;
    tree_.submodules[index].tied_to = static_cast<int>(owner);
  }

  ModuleTree& tree_;
  int computed_left_ = kMostComputed;
  std::vector<size_t> owners_;                        // of weights that others may have
  std::unordered_map<std::string, int> at_, within_;  // so many nodes
  std::unordered_map<size_t, std::vector<std::pair<const Node*, std::string>>> calls_;
  std::unordered_map<std::string, std::vector<size_t>> unnamed_;  // matrices whose names say nothing, by their looks
  Occupied names_;                                                // of modules and tensors
};

}  // namespace

void tie_modules(const Graph& graph, ModuleTree& tree) { Ties(graph, tree).run(); }

}  // namespace tonnx
