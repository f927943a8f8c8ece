// repeats.cpp - finds regions of a graph that have the same operators in the same order.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "modules/plain_layers.h"
#include "modules/regions.h"
#include "modules/tree_steps.h"

namespace tonnx {
namespace {

constexpr size_t kFewestLayers = 2;
constexpr size_t kLinesOfClass = 8;      // that a class has beside what it computes
constexpr size_t kNodesOfStatement = 2;  // that is about what one statement says

class RepeatFinder {
 public:
  RepeatFinder(const Graph& graph, ModuleTree& tree) : graph_(graph), tree_(tree) {
    for (const auto& [node, layer] : tree.submodule_of) ++calls_[layer];
    for (size_t i = 0; i < tree.tensors.size(); ++i) tensors_[tree.tensors[i].value] = i;
  }

  void run() {
    if (!is_flat()) return;
    std::vector<Region> regions = find_regions(graph_, [this](const Node& node) { return is_open(node); });
    std::map<size_t, std::vector<Region*>> alike;  // by shape
    for (Region& region : regions) {
      if (layers_of(region) >= kFewestLayers) alike[std::hash<std::string>()(shape_of(region))].push_back(&region);
    }
    std::erase_if(alike, [](const auto& each) { return each.second.size() < 2; });
    choose(alike);
    give_paths();
    if (!blocks_.empty()) place_others();
  }

 private:
  /// Whether hardly any module is inside another.
  bool is_flat() const {
    const auto is_nested = [](const auto& each) { return each.name.find('.') != std::string::npos; };
    const auto nested = std::count_if(tree_.submodules.begin(), tree_.submodules.end(), is_nested) +
                        std::count_if(tree_.tensors.begin(), tree_.tensors.end(), is_nested);
    return tree_.external_names.empty() &&
           static_cast<size_t>(nested) * 8 <= tree_.submodules.size() + tree_.tensors.size();
  }

  bool is_open(const Node& node) const {
    if (!subgraphs_of(node).empty() || node.domain == "tonnx") return false;
    const auto layer = tree_.submodule_of.find(&node);
    if (layer == tree_.submodule_of.end()) return true;
    const Submodule& module = tree_.submodules[layer->second];
    return !module.is_key && module.name.find('.') == std::string::npos && calls_.at(layer->second) == 1;
  }

  /// And tensors beside them.
  size_t layers_of(const Region& region) const {
    size_t count = 0;
    for (const Node* node : region.nodes) {
      if (tree_.submodule_of.contains(node)) {
        ++count;
        continue;
      }
      for (const Value* input : node->inputs())
        count += tensors_.contains(input) || (input && is_of_constants(*input)) ? 1 : 0;
    }
    return count;
  }

  /// What is computed, but for numbers.
  std::string shape_of(const Region& region) const {
    std::unordered_map<const Value*, size_t> number;
    number[region.entry] = 0;
    std::string shape;
    for (const Node* node : region.nodes) {
      const auto layer = tree_.submodule_of.find(node);
      shape += layer == tree_.submodule_of.end() ? fmt::format("{}.{}", node->op.view(), node->overload.view())
                                                 : tree_.submodules[layer->second].spec.type;
      for (const Attribute& attribute : node->attributes) shape += "," + attribute.name;
      for (const Value* input : node->inputs()) {
        const auto known = number.find(input);
        shape += known != number.end() ? fmt::format(" {}", known->second) : input && input->constant ? " w" : " x";
      }
      for (const Value* output : node->outputs()) number.emplace(output, number.size());
      shape += '\n';
    }
    return shape;
  }

  /// Whether a class is shorter than so many texts of what the region computes.
  bool is_worth_it(const Region& region, size_t texts) const {
    const size_t lines = layers_of(region) + region.nodes.size() / kNodesOfStatement;
    return texts > 1 && (texts - 1) * lines > kLinesOfClass + 2 * texts;
  }

  /// The innermost block that all nodes of the region are in, if they are; -1 where they are in none, and nothing where
  /// some are and others are not.
  std::optional<int> block_around(const Region& region) const {
    const auto block_of = [&](const Node* node) {
      const auto at = block_of_.find(node);
      return at == block_of_.end() ? -1 : at->second;
    };
    const int block = block_of(region.nodes[0]);
    const bool is_same = std::all_of(region.nodes.begin(), region.nodes.end(),
                                     [&](const Node* node) { return block_of(node) == block; });
    return is_same ? std::optional(block) : std::nullopt;
  }

  /// The largest first; a region inside another of them is a block of its block.
  void choose(const std::map<size_t, std::vector<Region*>>& alike) {
    std::vector<const std::vector<Region*>*> order;
    for (const auto& [shape, regions] : alike) order.push_back(&regions);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return (*a)[0]->nodes.size() > (*b)[0]->nodes.size(); });
    for (const auto* regions : order) {
      std::vector<Block> found;
      std::set<std::pair<int, size_t>> texts;  // blocks of a shape are one text
      for (const Region* region : *regions) {
        const auto around = block_around(*region);
        if (!around) continue;
        Block block{*region, shapes_, *around};
        if (*around >= 0) {
          const std::vector<const Node*>& nodes = blocks_[static_cast<size_t>(*around)].region.nodes;
          block.place = static_cast<size_t>(std::find(nodes.begin(), nodes.end(), region->exit()) - nodes.begin());
          texts.emplace(blocks_[static_cast<size_t>(*around)].shape, block.place);
        } else {
          texts.emplace(-1, found.size());
        }
        found.push_back(std::move(block));
      }
      if (!is_worth_it(*(*regions)[0], texts.size())) continue;
      ++shapes_;
      for (Block& block : found) {
        for (const Node* node : block.region.nodes) block_of_[node] = static_cast<int>(blocks_.size());
        blocks_.push_back(std::move(block));
      }
    }
    for (size_t first = 0; first < blocks_.size();) {
      size_t end = first + 1;
      while (end < blocks_.size() && blocks_[end].shape == blocks_[first].shape) ++end;
      while (extend(first, end)) {
      }
      first = end;
    }
  }

  /// What alone gives all blocks of a shape what they begin with, and is alike, is part of them.
  bool extend(size_t first, size_t end) {
    std::string shape;
    for (size_t i = first; i < end; ++i) {
      const Node* before = blocks_[i].region.entry->producer;
      if (before == nullptr || before->graph != &graph_ || block_of_.contains(before) || !is_open(*before) ||
          before->outputs().size() != 1)
        return false;
      const Value* taken = nullptr;
      for (const Value* input : before->inputs()) {
        if (input == nullptr || input->constant || is_of_constants(*input)) continue;
        if (taken != nullptr) return false;
        taken = input;
      }
      const bool is_layer = tree_.submodule_of.contains(before);
      const bool is_own =
          std::all_of(before->output(0)->uses.begin(), before->output(0)->uses.end(), [&](const Use& use) {
            const auto at = use.user ? block_of_.find(use.user) : block_of_.end();
            return at != block_of_.end() && at->second == static_cast<int>(i);
          });
      if (taken == nullptr || !is_own || (!is_layer && !plain_layer(*before).ends_with("()"))) return false;
      const std::string own = shape_of({{before}, taken});
      if (i > first && own != shape) return false;
      shape = own;
    }
    for (size_t i = first; i < end; ++i) {
      Region& region = blocks_[i].region;
      const Node* before = region.entry->producer;
      region.nodes.insert(region.nodes.begin(), before);
      block_of_[before] = static_cast<int>(i);
      for (const Value* input : before->inputs()) {
        if (input && !input->constant && !is_of_constants(*input)) region.entry = input;
      }
    }
    return true;
  }

  static bool is_of_constants(const Value& value) {
    return value.producer != nullptr && !value.producer->inputs().empty() &&
           std::all_of(value.producer->inputs().begin(), value.producer->inputs().end(),
                       [](const Value* input) { return input == nullptr || input->constant; });
  }

  struct Block {
    Region region;
    int shape = 0;
    int around = -1;   // the block that it is in
    size_t place = 0;  // of its last node in that block
    std::string path;
  };

  /// Those that follow each other are a stage.
  void give_paths() {
    std::unordered_map<const Node*, int> position;
    for (const Node& node : graph_) position[&node] = static_cast<int>(position.size());
    std::vector<Block*> order;
    for (Block& block : blocks_) {
      if (block.around < 0) order.push_back(&block);
    }
    std::sort(order.begin(), order.end(), [&](const Block* a, const Block* b) {
      return position.at(a->region.exit()) < position.at(b->region.exit());
    });
    std::set<std::string> taken;
    for (const Submodule& module : tree_.submodules) taken.insert(module.name.substr(0, module.name.find('.')));
    for (const StateEntry& tensor : tree_.tensors) taken.insert(tensor.name.substr(0, tensor.name.find('.')));
    auto free_name = [&, number = 0](std::string_view word) mutable {
      std::string name;
      do name = fmt::format("{}{}", word, ++number);
      while (!taken.insert(name).second);
      return name;
    };
    for (size_t i = 0; i < order.size();) {
      size_t end = i + 1;
      while (end < order.size() && order[end]->shape == order[i]->shape &&
             order[end]->region.entry == order[end - 1]->region.exit()->output(0))
        ++end;
      const std::string name = free_name(end - i > 1 ? "stage" : "block");
      for (size_t k = i; k < end; ++k) order[k]->path = end - i > 1 ? fmt::format("{}.{}", name, k - i) : name;
      i = end;
    }
    std::map<int, std::vector<Block*>> inside;
    for (Block& block : blocks_) {
      if (block.around >= 0) inside[block.around].push_back(&block);
    }
    for (auto& [around, blocks] : inside) {  // larger blocks, which have smaller numbers, have their paths
      std::sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) { return a->place < b->place; });
      for (size_t i = 0; i < blocks.size(); ++i)
        blocks[i]->path = fmt::format("{}.part{}", blocks_[static_cast<size_t>(around)].path, i + 1);
    }
    for (size_t i = 0; i < blocks_.size(); ++i) name_block(static_cast<int>(i));
  }

  /// What is in no block is not drawn into one by its use there; but for numbers, and what is made of constants alone.
  void place_others() {
    for (const Node& node : graph_) {
      const bool is_tensor = !node.outputs().empty() && node.output(0) != nullptr && node.output(0)->type.is_tensor();
      if (is_tensor && !block_of_.contains(&node)) tree_.places.emplace(&node, "");
    }
  }

  /// Names what is in the block, and in none inside it.
  void name_block(int index) {
    const Block& block = blocks_[static_cast<size_t>(index)];
    std::vector<Submodule*> layers;
    std::map<std::string, int> counts, numbers;
    std::unordered_set<const Node*> inside;
    for (const Node* node : block.region.nodes) {
      if (block_of_.at(node) != index) continue;
      inside.insert(node);
      tree_.places[node] = block.path;
      const auto layer = tree_.submodule_of.find(node);
      if (layer == tree_.submodule_of.end()) continue;
      layers.push_back(&tree_.submodules[layer->second]);
      ++counts[layers.back()->spec.short_name];
    }
    for (Submodule* layer : layers) {
      const std::string& word = layer->spec.short_name;
      layer->name = counts[word] == 1 ? fmt::format("{}.{}", block.path, word)
                                      : fmt::format("{}.{}{}", block.path, word, ++numbers[word]);
    }
    name_tensors(block, inside);
  }

  /// Tensors that only this block has.
  void name_tensors(const Block& block, const std::unordered_set<const Node*>& inside) {
    int number = 0;
    const auto is_own = [&](const Value& value) {
      return std::all_of(value.uses.begin(), value.uses.end(),
                         [&](const Use& use) { return use.user && inside.contains(use.user); });
    };
    const auto add = [&](const Value* value) {
      const auto at = tensors_.find(value);
      if (at == tensors_.end()) return;
      StateEntry& entry = tree_.tensors[at->second];
      if (!entry.is_key && entry.name.find('.') == std::string::npos)
        entry.name = fmt::format("{}.{}{}", block.path, entry.trainable ? "weight" : "constant", ++number);
    };
    for (const Node* node : block.region.nodes) {
      for (const Value* input : node->inputs()) {
        if (input == nullptr || !inside.contains(node) || !is_own(*input)) continue;
        add(input);
        if (!is_of_constants(*input)) continue;
        for (const Value* constant : input->producer->inputs()) {
          if (constant && constant->uses.size() == 1) add(constant);
        }
      }
    }
  }

  const Graph& graph_;
  ModuleTree& tree_;
  std::unordered_map<size_t, int> calls_;  // of each layer
  std::unordered_map<const Value*, size_t> tensors_;
  std::unordered_map<const Node*, int> block_of_;
  std::vector<Block> blocks_;
  int shapes_ = 0;
};

}  // namespace

void find_repeats(const Graph& graph, ModuleTree& tree) { RepeatFinder(graph, tree).run(); }

}  // namespace tonnx
