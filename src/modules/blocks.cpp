// blocks.cpp - finds blocks from the innermost to the outermost: a block is no detour of others.
#include "modules/blocks.h"

#include <algorithm>
#include <queue>
#include <set>

namespace tonnx {
namespace {

constexpr size_t kFewItems = 2;     // what is so little is written where it is used
constexpr int kFewTensors = 2;      // a place with fewer layers and tensors is no block
constexpr size_t kManyNodes = 6;    // but for one that computes as much
constexpr size_t kManyPlaces = 3;   // or that is found in so many kinds of places
constexpr size_t kManyValues = 20;  // that a block takes and gives
constexpr size_t kFewNodes = 8;     // that a place around a list computes, which is written where it is used

/// The parts of a directed graph that lead to themselves, after Tarjan: for each vertex the number of its part.
class Cycles {
 public:
  explicit Cycles(const std::vector<std::vector<int>>& edges)
      : edges_(edges), index_(edges.size(), -1), low_(edges.size()), part_(edges.size(), -1) {
    for (size_t i = 0; i < edges.size(); ++i) {
      if (index_[i] < 0) visit(static_cast<int>(i));
    }
  }
  const std::vector<int>& part_of() const { return part_; }
  const std::vector<int>& sizes() const { return sizes_; }

 private:
  void open(int vertex) {
    index_[static_cast<size_t>(vertex)] = low_[static_cast<size_t>(vertex)] = next_++;
    stack_.push_back(vertex);
    path_.emplace_back(vertex, 0);
  }

  void visit(int first) {
    open(first);
    while (!path_.empty()) {
      const auto [vertex, at] = path_.back();
      const auto v = static_cast<size_t>(vertex);
      if (at < edges_[v].size()) {
        ++path_.back().second;
        const int to = edges_[v][at];
        const auto t = static_cast<size_t>(to);
        if (index_[t] < 0)
          open(to);
        else if (part_[t] < 0)
          low_[v] = std::min(low_[v], index_[t]);
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) {
        const auto around = static_cast<size_t>(path_.back().first);
        low_[around] = std::min(low_[around], low_[v]);
      }
      if (low_[v] == index_[v]) close(vertex);
    }
  }

  void close(int vertex) {
    sizes_.push_back(0);
    for (;;) {
      const int top = stack_.back();
      stack_.pop_back();
      part_[static_cast<size_t>(top)] = static_cast<int>(sizes_.size()) - 1;
      ++sizes_.back();
      if (top == vertex) return;
    }
  }

  const std::vector<std::vector<int>>& edges_;
  std::vector<int> index_, low_, part_, sizes_, stack_;
  std::vector<std::pair<int, size_t>> path_;
  int next_ = 0;
};

class BlockFinder {
 public:
  BlockFinder(const Graph& graph, const ModuleTree& tree, const Scopes& scopes, int root)
      : graph_(graph),
        tree_(tree),
        scopes_(scopes),
        root_(root),
        numbers_(graph),
        nodes_(numbers_.nodes()),
        place_(places_of_nodes(graph, numbers_, tree, scopes, root)) {
    for (int i = 0; i < scopes.count(); ++i) is_list_.push_back(scopes.is_list(i));
    find_edges();
  }

  Blocks run() {
    result_.is_block.assign(static_cast<size_t>(scopes_.count()), false);
    choose();
    result_.is_block[static_cast<size_t>(root_)] = true;
    drop_wide_ones();
    drop_little_ones();
    order();
    return std::move(result_);
  }

 private:
  void add_edge(const Value* value, int to) {
    if (value == nullptr || value->constant) return;
    const int from = numbers_.find(value->producer);
    uses_.push_back({value, from, to});
    if (from != kOutside && to != kOutside && from != to) edges_.emplace_back(from, to);
  }

  void find_edges_of(const Node& node, int to) {
    for (const Value* input : node.inputs()) add_edge(input, to);
    for (const GraphPtr& inner : subgraphs_of(node)) {
      for (const Node& each : *inner) find_edges_of(each, to);
      for (const Value* output : inner->outputs()) add_edge(output, to);
    }
  }

  void find_edges() {
    for (size_t i = 0; i < nodes_.size(); ++i) find_edges_of(*nodes_[i], static_cast<int>(i));
    for (const Value* output : graph_.outputs()) add_edge(output, kOutside);
  }

  /// From the deepest places up: what can be one step of the computation, beside those that are already, is a block.
  void choose() {
    int deepest = 0;
    for (int i = 0; i < scopes_.count(); ++i) deepest = std::max(deepest, scopes_[i].depth);
    std::vector<int> top(nodes_.size());  // the block that stands for each node so far, or the node itself
    for (size_t i = 0; i < top.size(); ++i) top[i] = -static_cast<int>(i) - 1;
    for (int depth = deepest; depth > scopes_[root_].depth; --depth) {
      std::vector<int> at(nodes_.size(), -1);
      for (size_t i = 0; i < nodes_.size(); ++i) {
        int scope = place_[i];
        while (scopes_[scope].depth > depth) scope = scopes_[scope].parent;
        if (scopes_[scope].depth == depth && !is_list_[static_cast<size_t>(scope)] && !scopes_[scope].is_leaf())
          at[i] = scope;
      }
      const std::vector<bool> in_cycle = find_cycles(top, at);
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (at[i] < 0 || in_cycle[static_cast<size_t>(at[i])]) continue;
        result_.is_block[static_cast<size_t>(at[i])] = true;
        top[i] = at[i];
      }
    }
  }

  /// Which places of those that are to become blocks would be needed before they are done.
  std::vector<bool> find_cycles(const std::vector<int>& top, const std::vector<int>& at) const {
    constexpr int kNone = -1;
    std::vector<int> vertex_of(slot_count(), kNone);
    int count = 0;
    const auto vertex = [&](size_t node) {
      int& known = vertex_of[slot_of(at[node] >= 0 ? at[node] : top[node])];
      if (known == kNone) known = count++;
      return known;
    };
    for (size_t i = 0; i < nodes_.size(); ++i) vertex(i);
    std::vector<std::vector<int>> edges(static_cast<size_t>(count));
    for (const auto& [from, to] : edges_) {
      const int a = vertex(static_cast<size_t>(from)), b = vertex(static_cast<size_t>(to));
      if (a != b) edges[static_cast<size_t>(a)].push_back(b);
    }
    const Cycles cycles(edges);
    std::vector<bool> result(static_cast<size_t>(scopes_.count()), false);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (at[i] < 0) continue;
      const int part = cycles.part_of()[static_cast<size_t>(vertex(i))];
      if (cycles.sizes()[static_cast<size_t>(part)] > 1) result[static_cast<size_t>(at[i])] = true;
    }
    return result;
  }

  /// Of a scope, or of a node as a negative number, in a list of all of them.
  size_t slot_of(int item) const { return static_cast<size_t>(item >= 0 ? item : scopes_.count() - item - 1); }
  size_t slot_count() const { return static_cast<size_t>(scopes_.count()) + nodes_.size(); }

  int block_around(int scope) const {
    while (!result_.is_block[static_cast<size_t>(scope)]) scope = scopes_[scope].parent;
    return scope;
  }

  /// What small places compute, and in how many kinds of places: a convolution with what follows it is worth a class
  /// where it is everywhere.
  std::vector<bool> find_wrappers() const {
    std::vector<std::string> computes(static_cast<size_t>(scopes_.count()));
    std::vector<size_t> steps(computes.size(), 0);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto scope = static_cast<size_t>(place_[i]);
      if (++steps[scope] > kManyNodes) continue;
      const auto layer = tree_.submodule_of.find(nodes_[i]);
      computes[scope] += nodes_[i]->op.str() + " ";
      if (layer != tree_.submodule_of.end()) computes[scope] += scopes_[scopes_.of_layer(layer->second)].name + " ";
    }
    std::unordered_map<std::string, std::set<std::string>> places;
    for (int i = 1; i < scopes_.count(); ++i) {
      const auto scope = static_cast<size_t>(i);
      if (steps[scope] > 1 && steps[scope] <= kManyNodes && result_.is_block[scope])
        places[computes[scope]].insert(kind_of_place(scopes_.path_of(i)));
    }
    std::vector<bool> result(computes.size(), false);
    for (size_t i = 1; i < computes.size(); ++i) {
      const auto at = places.find(computes[i]);
      result[i] = result_.is_block[i] && at != places.end() && at->second.size() >= kManyPlaces;
    }
    return result;
  }

  /// A place that takes or gives a great many values is no block: its call would be longer than what it does.
  void drop_wide_ones() {
    std::vector<std::vector<const Value*>> crossing(static_cast<size_t>(scopes_.count()));
    const auto place_at = [&](int node) { return node == kOutside ? root_ : place_[static_cast<size_t>(node)]; };
    for (const auto& [value, from, to] : uses_) {
      const int a = place_at(from), b = place_at(to), around = scopes_.common(a, b);
      for (const int side : {a, b}) {
        for (int scope = side; scope != around; scope = scopes_[scope].parent) {
          auto& values = crossing[static_cast<size_t>(scope)];
          if (values.size() <= kManyValues && std::find(values.begin(), values.end(), value) == values.end())
            values.push_back(value);
        }
      }
    }
    for (size_t i = 0; i < crossing.size(); ++i) {
      if (crossing[i].size() > kManyValues && static_cast<int>(i) != root_) result_.is_block[i] = false;
    }
  }

  /// A place with one layer, or that only hands on to two others and has no number, is written where it is used.
  void drop_little_ones() {
    std::vector<int> tensors(static_cast<size_t>(scopes_.count()), 0);
    for (int i = scopes_.count() - 1; i > 0; --i) {  // children come behind their parents
      auto& own = tensors[static_cast<size_t>(i)];
      own += static_cast<int>(scopes_[i].tensors.size()) + (scopes_[i].is_leaf() ? 1 : 0);
      tensors[static_cast<size_t>(scopes_[i].parent)] += own;
    }
    const std::vector<bool> is_wrapper = find_wrappers();
    std::vector<size_t> nodes(static_cast<size_t>(scopes_.count()), 0), calls = nodes;
    for (const int place : place_) ++nodes[static_cast<size_t>(block_around(place))];
    for (int i = scopes_.count() - 1; i > 0; --i) {
      const auto scope = static_cast<size_t>(i);
      if (!result_.is_block[scope] || i == root_) continue;
      const int around = block_around(scopes_[i].parent);
      const bool has_little = tensors[scope] < kFewTensors && nodes[scope] < kManyNodes && !is_wrapper[scope];
      const bool hands_on = nodes[scope] == 0 && calls[scope] <= kFewItems && !is_index(scopes_[i].name);
      if (has_little || hands_on || (nodes[scope] <= kFewNodes && holds_only_list(i))) {
        result_.is_block[scope] = false;
        nodes[static_cast<size_t>(around)] += nodes[scope];
        calls[static_cast<size_t>(around)] += calls[scope];
      } else {
        ++calls[static_cast<size_t>(around)];
      }
    }
  }

  /// A place that is there once, and has nothing but numbered blocks: what goes around them is a loop.
  bool holds_only_list(int scope) const {
    const Scope& each = scopes_[scope];
    if (each.children.size() != 1 || !each.tensors.empty() || !is_list_[static_cast<size_t>(each.children[0])])
      return false;
    const std::vector<int>& members = scopes_[each.children[0]].children;
    if (!std::all_of(members.begin(), members.end(),
                     [&](int member) { return result_.is_block[static_cast<size_t>(member)]; }))
      return false;
    for (int around = scope; around > 0; around = scopes_[around].parent) {
      if (is_index(scopes_[around].name)) return false;
    }
    return true;
  }

  /// The item of block `around` that a block inside it, or one of its nodes, is part of.
  int item_of(int block, size_t node, int around) const {
    if (block == around) return -static_cast<int>(node) - 1;
    for (;;) {
      const int next = block_around(scopes_[block].parent);
      if (next == around) return block;
      block = next;
    }
  }

  void order() {
    const auto count = static_cast<size_t>(scopes_.count());
    std::vector<int> block(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) result_.block_of[nodes_[i]] = block[i] = block_around(place_[i]);
    std::vector<std::vector<int>> items(count);
    std::vector<std::vector<std::pair<int, int>>> edges(count);
    std::vector<int> first(count, -1);  // the first node of each block
    for (size_t i = 0; i < nodes_.size(); ++i) {
      items[static_cast<size_t>(block[i])].push_back(-static_cast<int>(i) - 1);
      for (int inner = block[i]; inner != root_ && first[static_cast<size_t>(inner)] < 0;) {
        first[static_cast<size_t>(inner)] = static_cast<int>(i);
        const int around = block_around(scopes_[inner].parent);
        items[static_cast<size_t>(around)].push_back(inner);
        inner = around;
      }
    }
    for (const auto& [from, to] : edges_) {
      const int a = block[static_cast<size_t>(from)], b = block[static_cast<size_t>(to)];
      const int around = block_around(scopes_.common(a, b));
      const int before = item_of(a, static_cast<size_t>(from), around),
                behind = item_of(b, static_cast<size_t>(to), around);
      if (before != behind) edges[static_cast<size_t>(around)].emplace_back(before, behind);
    }
    result_.items.resize(count);
    std::vector<int> place_in_block(slot_count(), 0);
    for (size_t i = 0; i < count; ++i) {
      if (result_.is_block[i]) result_.items[i] = sorted(items[i], edges[i], first, place_in_block);
    }
  }

  /// Each item behind those that it needs; otherwise as in the file.
  std::vector<BlockItem> sorted(const std::vector<int>& items, const std::vector<std::pair<int, int>>& edges,
                                const std::vector<int>& first, std::vector<int>& place_in_block) const {
    const auto position = [&](int item) { return item < 0 ? -item - 1 : first[static_cast<size_t>(item)]; };
    for (size_t i = 0; i < items.size(); ++i) place_in_block[slot_of(items[i])] = static_cast<int>(i);
    const auto index_of = [&](int item) { return static_cast<size_t>(place_in_block[slot_of(item)]); };
    std::vector<int> waits_for(items.size(), 0);
    std::vector<std::vector<int>> behind(items.size());
    for (const auto& [before, after] : edges) {
      ++waits_for[index_of(after)];
      behind[index_of(before)].push_back(after);
    }
    using Entry = std::pair<int, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (const int item : items) {
      if (waits_for[index_of(item)] == 0) ready.emplace(position(item), item);
    }
    std::vector<BlockItem> result;
    while (!ready.empty()) {
      const int item = ready.top().second;
      ready.pop();
      result.push_back(item < 0 ? BlockItem{nodes_[static_cast<size_t>(-item - 1)], -1} : BlockItem{nullptr, item});
      for (const int after : behind[index_of(item)]) {
        if (--waits_for[index_of(after)] == 0) ready.emplace(position(after), after);
      }
    }
    return result;
  }

  /// A value, the node that makes it, and one that uses it.
  struct Crossing {
    const Value* value;
    int from, to;
  };
  static constexpr int kOutside = NodeNumbers::kElsewhere;

  const Graph& graph_;
  const ModuleTree& tree_;
  const Scopes& scopes_;
  int root_;
  NodeNumbers numbers_;
  const std::vector<const Node*>& nodes_;
  std::vector<int> place_;
  std::vector<bool> is_list_;  // for each scope
  std::vector<std::pair<int, int>> edges_;
  std::vector<Crossing> uses_;
  Blocks result_;
};

}  // namespace

Blocks find_blocks(const Graph& graph, const ModuleTree& tree, const Scopes& scopes, int root) {
  return BlockFinder(graph, tree, scopes, root).run();
}

}  // namespace tonnx
