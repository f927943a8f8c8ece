// regions.cpp - finds regions through the dominators of the nodes where values meet.
#include "modules/regions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "modules/plain_layers.h"

namespace tonnx {
namespace {

constexpr size_t kMostNodes = 400;   // of a region
constexpr size_t kWorkForEach = 50;  // so many steps for each node of the graph, and no more regions then

class RegionFinder {
 public:
  RegionFinder(const Graph& graph, const std::function<bool(const Node&)>& is_open) : is_open_(is_open) {
    for (const Node& node : graph) {
      number_[&node] = static_cast<int>(nodes_.size());
      nodes_.push_back(&node);
    }
    work_ = nodes_.size() * kWorkForEach;
  }

  std::vector<Region> run() {
    find_dominators();
    std::vector<Region> regions;
    for (size_t i = 0; i < nodes_.size() && work_ > 0; ++i) {
      if (makers_[i].size() < 2) continue;
      Region region = region_of(static_cast<int>(i));
      if (!region.nodes.empty()) regions.push_back(std::move(region));
    }
    return regions;
  }

 private:
  static bool is_tensor_of(const Value* value) {
    return value != nullptr && value->type.is_tensor() && value->constant == nullptr;
  }

  /// What only depends on constants is part of whatever uses it.
  bool is_constant(int node) const { return is_constant_[static_cast<size_t>(node)]; }

  void find_dominators() {
    makers_.resize(nodes_.size());
    dominator_.assign(nodes_.size(), -1);
    depth_.assign(nodes_.size(), 0);
    is_constant_.assign(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      bool from_outside = false, has_tensor = false;
      for (const Value* input : nodes_[i]->inputs()) {
        if (!is_tensor_of(input)) continue;
        const auto maker = input->producer ? number_.find(input->producer) : number_.end();
        if (maker != number_.end() && is_constant(maker->second)) continue;
        has_tensor = true;
        if (maker == number_.end())
          from_outside = true;
        else if (std::find(makers_[i].begin(), makers_[i].end(), maker->second) == makers_[i].end())
          makers_[i].push_back(maker->second);
      }
      is_constant_[i] = !has_tensor && !nodes_[i]->inputs().empty();
      if (makers_[i].empty()) continue;
      int common = makers_[i][0];
      for (const int maker : makers_[i]) common = meeting(common, maker);
      if (from_outside) common = -1;
      dominator_[i] = common;
      depth_[i] = common < 0 ? 0 : depth_[static_cast<size_t>(common)] + 1;
    }
  }

  int meeting(int a, int b) {
    while (a != b && a >= 0 && b >= 0 && work_ > 0) {
      --work_;
      if (depth_[static_cast<size_t>(a)] < depth_[static_cast<size_t>(b)]) std::swap(a, b);
      a = dominator_[static_cast<size_t>(a)];
    }
    return a == b ? a : -1;
  }

  Region region_of(int last) {
    const int entry = dominator_[static_cast<size_t>(last)];
    if (entry < 0 || !is_open_(*nodes_[static_cast<size_t>(last)])) return {};
    const Node& maker = *nodes_[static_cast<size_t>(entry)];
    if (maker.outputs().size() != 1) return {};
    Region region{.entry = maker.output(0)};
    std::unordered_set<int> inside;
    if (!visit(last, entry, inside, region.nodes)) return {};
    const Node* end = region.exit();
    if (const Node* next = function_behind(*end)) {
      inside.insert(number_.at(next));
      region.nodes.push_back(next);
    }
    const bool is_closed = std::all_of(region.nodes.begin(), region.nodes.end() - 1, [&](const Node* node) {
      return std::all_of(node->outputs().begin(), node->outputs().end(), [&](const Value* output) {
        return output == nullptr || std::all_of(output->uses.begin(), output->uses.end(), [&](const Use& use) {
                 const auto user = use.user ? number_.find(use.user) : number_.end();
                 return user != number_.end() && inside.contains(user->second);
               });
      });
    });
    return is_closed ? region : Region{};
  }

  /// Each node behind those that it needs; false where there are too many, or one that may not be in a region.
  bool visit(int first, int entry, std::unordered_set<int>& inside, std::vector<const Node*>& order) {
    std::vector<std::pair<int, size_t>> path{{first, 0}};
    inside.insert(first);
    while (!path.empty()) {
      if (work_ == 0 || inside.size() > kMostNodes) return false;
      --work_;
      auto& [node, at] = path.back();
      const auto& makers = makers_[static_cast<size_t>(node)];
      if (at == makers.size()) {
        order.push_back(nodes_[static_cast<size_t>(node)]);
        path.pop_back();
        continue;
      }
      const int maker = makers[at++];
      if (maker == entry || !inside.insert(maker).second) continue;
      if (!is_open_(*nodes_[static_cast<size_t>(maker)])) return false;
      path.emplace_back(maker, 0);
    }
    return true;
  }

  /// A relu behind a sum, and the like.
  const Node* function_behind(const Node& node) const {
    if (node.outputs().size() != 1 || node.output(0)->uses.size() != 1) return nullptr;
    const Node* next = node.output(0)->uses[0].user;
    const bool is_function = next != nullptr && number_.contains(next) && is_open_(*next) &&
                             next->inputs().size() == 1 && plain_layer(*next).ends_with("()");
    return is_function ? next : nullptr;
  }

  const std::function<bool(const Node&)>& is_open_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, int> number_;
  std::vector<std::vector<int>> makers_;  // of the tensors that a node takes
  std::vector<int> dominator_, depth_;
  std::vector<bool> is_constant_;
  size_t work_ = 0;
};

}  // namespace

std::vector<Region> find_regions(const Graph& graph, const std::function<bool(const Node&)>& is_open) {
  return RegionFinder(graph, is_open).run();
}

}  // namespace tonnx
