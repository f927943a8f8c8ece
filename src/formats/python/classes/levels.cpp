// levels.cpp - counts how many classes stand inside one another.
#include "formats/python/classes/levels.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace tonnx::python {
namespace {

using Kind = ModulePart::Kind;

constexpr int kMostRounds = 8;

/// What a part looks like where nobody looks into its members: their names, and what is done with them.
std::string outside_of(const ModulePart& part) {
  std::string text;
  for (const Member& member : part.members) text += member.name + (member.part ? "()," : ",");
  if (!part.graph) return text;
  for (const Node& node : *part.graph) text += node.domain.str() + ":" + node.op.str() + ";";
  return text;
}

class Levels {
 public:
  explicit Levels(ModulePart& model) : model_(model) {
    collect(model);
    std::unordered_map<std::string, int> known;
    for (const ModulePart* part : parts_)
      outsides_[part] = known.try_emplace(outside_of(*part), static_cast<int>(known.size())).first->second;
    find_nested(model, {});
  }

  std::vector<std::vector<ModulePart*>> run() {
    for (int round = 0; round < kMostRounds; ++round) {
      is_changed_ = false;
      count(model_);
      if (!is_changed_) break;
    }
    std::map<int, std::vector<ModulePart*>> by_level;
    for (ModulePart* part : parts_) by_level[levels_.at(part)].push_back(part);
    std::vector<std::vector<ModulePart*>> result;
    for (auto& [level, parts] : by_level) result.push_back(std::move(parts));
    return result;
  }

 private:
  static bool is_written(const ModulePart& part) { return part.kind == Kind::Class && !part.path.empty(); }

  /// Those inside before those around them.
  void collect(ModulePart& part) {
    for (const Member& member : part.members) {
      if (member.part) collect(*member.part);
    }
    if (is_written(part)) parts_.push_back(&part);
  }

  /// Parts that look like what they are in cannot be on one level with it.
  void find_nested(const ModulePart& part, std::set<int> around) {
    if (is_written(part) && !around.insert(outsides_.at(&part)).second) nested_.insert(outsides_.at(&part));
    for (const Member& member : part.members) {
      if (member.part) find_nested(*member.part, around);
    }
  }

  /// How many levels the part and what is inside of it need.
  int count(const ModulePart& part) {
    int level = 0;
    for (const Member& member : part.members) {
      if (member.part) level = std::max(level, count(*member.part));
    }
    if (!is_written(part)) return level;
    int& own = levels_[&part];
    const int outside = outsides_.at(&part);
    if (!nested_.contains(outside)) {
      int& highest = highest_[outside];
      highest = level = std::max(level, highest);
    }
    is_changed_ |= own != level;
    own = level;
    return level + 1;
  }

  ModulePart& model_;
  std::vector<ModulePart*> parts_;
  std::unordered_map<const ModulePart*, int> outsides_;  // equal numbers look alike
  std::unordered_map<const ModulePart*, int> levels_;
  std::unordered_map<int, int> highest_;  // level of the parts that look so
  std::set<int> nested_;
  bool is_changed_ = false;
};

}  // namespace

std::vector<std::vector<ModulePart*>> levels_of(ModulePart& model) { return Levels(model).run(); }

}  // namespace tonnx::python
