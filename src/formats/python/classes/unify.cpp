// unify.cpp - tries groups of drafts with each other whose members have the same names.
#include "formats/python/classes/unify.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "modules/variants.h"

namespace tonnx::python {
namespace {

constexpr size_t kMostTries = 4;   // groups that one group is tried with
constexpr size_t kMostUses = 4;    // places that a call is tried at
constexpr size_t kMostNames = 64;  // members of a part, for one of them to be left out

using Names = std::set<std::string>;

Names names_of(const DraftGroup& group) {
  Names names;
  for (const Member& member : group[0].part->members) names.insert(member.name);
  return names;
}

void take_back(const std::vector<Undo>& undo) {
  for (size_t i = undo.size(); i-- > 0;) undo[i]();
}

class Unifier {
 public:
  Unifier(std::vector<DraftGroup>& groups, const Drafts& drafts, const std::function<bool(const DraftGroup&)>& is_small)
      : groups_(groups), drafts_(drafts), is_small_(is_small) {}

  void run() {
    for (const auto& [names, index] : by_names()) {
      if (!names.contains("shortcut")) join_shortcuts(index);  // which is what the flag is called
    }
    drop_empty();
    std::map<Names, std::vector<size_t>> known = by_names();
    for (const auto& [names, index] : known) {
      if (names.size() > kMostNames) continue;
      Names fewer = names;
      for (const std::string& name : names) {
        fewer.erase(name);
        if (const auto at = known.find(fewer); at != known.end()) join_members(index, at->second, name);
        fewer.insert(name);
      }
    }
    drop_empty();
    for (const auto& [names, index] : by_names()) join_classes(index);
    drop_empty();
  }

 private:
  std::map<Names, std::vector<size_t>> by_names() const {
    std::map<Names, std::vector<size_t>> result;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i][0].part->graph) result[names_of(groups_[i])].push_back(i);
    }
    return result;
  }

  void drop_empty() {
    std::erase_if(groups_, [](const DraftGroup& group) { return group.empty(); });
  }

  /// One group of both, if all drafts are alike and it is small; otherwise what was done is undone.
  bool join(size_t a, size_t b, DraftGroup drafts, std::vector<Undo>& undo) {
    const bool are_alike =
        std::all_of(drafts.begin(), drafts.end(), [&](const Draft& draft) { return draft.shape == drafts[0].shape; });
    if (!are_alike || !is_small_(drafts)) {
      take_back(undo);
      return false;
    }
    groups_[a] = std::move(drafts);
    groups_[b].clear();
    return true;
  }

  void join_shortcuts(const std::vector<size_t>& index) {
    for (const size_t a : index) {
      const auto shortcut = groups_[a].empty() ? std::nullopt : find_shortcut(*groups_[a][0].part);
      size_t tries = 0;
      for (const size_t b : index) {
        if (!shortcut || a == b || groups_[b].empty() || tries++ >= kMostTries) continue;
        if (join_shortcut(a, b, *shortcut)) break;
      }
    }
  }

  bool join_shortcut(size_t a, size_t b, const Shortcut& shortcut) {
    const Graph& other = *groups_[b][0].part->graph;
    if (other.outputs().size() != 1 || other.inputs().size() != groups_[a][0].part->graph->inputs().size() ||
        find_shortcut(*groups_[b][0].part) || other.outputs()[0]->producer == nullptr)
      return false;
    std::vector<Undo> undo;
    DraftGroup drafts;
    for (const auto& [part, form, is_first] : parts_of(a, b)) {
      undo.push_back(is_first ? make_shortcut_optional(*part, shortcut) : add_optional_shortcut(*part, shortcut));
      drafts.push_back(drafts_.draft_of(*part, {.has_optional_add = true, .has_shortcut = is_first}));
      if (drafts.back().shape != drafts[0].shape) break;  // to be undone
    }
    return join(a, b, std::move(drafts), undo);
  }

  struct PartOf {
    ModulePart* part = nullptr;
    Form form;
    bool is_first = false;  // of the first group
  };

  /// The parts of two groups: one of each, then the others.
  std::vector<PartOf> parts_of(size_t a, size_t b) const {
    std::vector<PartOf> parts;
    const auto add = [&](const DraftGroup& group, size_t first, size_t end, bool is_first) {
      for (size_t i = first; i < end; ++i) parts.push_back({group[i].part, group[i].form, is_first});
    };
    add(groups_[a], 0, 1, true);
    add(groups_[b], 0, 1, false);
    add(groups_[a], 1, groups_[a].size(), true);
    add(groups_[b], 1, groups_[b].size(), false);
    return parts;
  }

  /// The groups of `with` have a member that those of `without` have not.
  void join_members(const std::vector<size_t>& with, const std::vector<size_t>& without, const std::string& member) {
    for (const size_t a : with) {
      if (groups_[a].empty() || !groups_[a][0].form.optional_member.empty()) continue;
      const auto argument = argument_of_member(*groups_[a][0].part, member);
      const bool is_alone = is_left_alone(*groups_[a][0].part, member);
      size_t tries = 0;
      for (const size_t b : without) {
        if ((!argument && !is_alone) || groups_[b].empty() ||
            groups_[b][0].form.has_optional_add != groups_[a][0].form.has_optional_add || tries++ >= kMostTries)
          continue;
        bool is_joined = is_alone && join_member(a, b, member, std::nullopt, 0);
        for (size_t use = 0; argument && use < kMostUses && !is_joined; ++use)
          is_joined = join_member(a, b, member, argument, use);
        if (is_joined) break;
      }
    }
  }

  /// The constructor makes the member after a flag where all are made alike; otherwise it is given the member.
  bool join_member(size_t a, size_t b, const std::string& member, std::optional<size_t> argument, size_t use) {
    if ((argument && groups_[b][0].part->graph->inputs().size() <= *argument) ||
        !groups_[b][0].form.optional_member.empty())
      return false;
    const std::vector<Statement> lines = drafts_.member_lines(*groups_[a][0].part, {.optional_member = member});
    return join_member(a, b, member, argument, use, numbers_with_flag(lines.back().text)) ||
           join_member(a, b, member, argument, use, {});
  }

  /// Without an argument nothing of the part calls the member.
  bool join_member(size_t a, size_t b, const std::string& member, std::optional<size_t> argument, size_t use,
                   const NumberedText& made_inside) {
    std::vector<Undo> undo;
    DraftGroup drafts;
    for (auto& [part, form, is_first] : parts_of(a, b)) {
      form.optional_member = member;
      form.made_inside = made_inside;
      if (!is_first && argument) {
        const auto added = add_optional_call(*part, member, *argument, use);
        if (!added) {
          take_back(undo);
          return false;
        }
        undo.push_back(*added);
      }
      drafts.push_back(drafts_.draft_of(*part, form));
      if (drafts.back().shape != drafts[0].shape) break;  // to be undone
    }
    return join(a, b, std::move(drafts), undo);
  }

  void join_classes(const std::vector<size_t>& index) {
    for (const size_t a : index) {
      size_t tries = 0;
      for (const size_t b : index) {
        if (a == b || groups_[a].empty() || groups_[b].empty() || tries++ >= kMostTries) continue;
        const std::string member = differing_member(groups_[a][0], groups_[b][0]);
        if (!member.empty()) join_class(a, b, member);
      }
    }
  }

  /// The one member that two drafts make in ways that differ in more than numbers; empty where that is not all.
  static std::string differing_member(const Draft& a, const Draft& b) {
    const auto& [x, y] = std::tie(a.form, b.form);
    if (a.lines.size() != b.lines.size() || a.members.size() != b.members.size() || !x.optional_member.empty() ||
        !y.optional_member.empty() || x.has_optional_add || y.has_optional_add || a.others.size() != b.others.size())
      return "";
    std::string member;
    for (size_t i = 0; i < a.lines.size(); ++i) {
      if (a.lines[i].texts == b.lines[i].texts) continue;
      const std::string name = i < a.members.size() ? attribute_of(a.members[i].text) : "";
      if (name.empty() || !member.empty() || name != attribute_of(b.members[i].text)) return "";
      member = name;
    }
    return member;
  }

  /// `attn` of `self.attn = Attention(64)`.
  static std::string attribute_of(const std::string& line) {
    const size_t equals = line.find(" = ");
    return line.starts_with("self.") && equals != std::string::npos ? line.substr(5, equals - 5) : "";
  }

  bool join_class(size_t a, size_t b, const std::string& member) {
    std::vector<Undo> nothing;
    DraftGroup drafts;
    for (auto& [part, form, is_first] : parts_of(a, b)) {
      if (!form.given_member.empty() && form.given_member != member) return false;
      form.given_member = member;
      drafts.push_back(drafts_.draft_of(*part, form));
    }
    return join(a, b, std::move(drafts), nothing);
  }

  std::vector<DraftGroup>& groups_;
  const Drafts& drafts_;
  const std::function<bool(const DraftGroup&)>& is_small_;
};

}  // namespace

void unify_groups(std::vector<DraftGroup>& groups, const Drafts& drafts,
                  const std::function<bool(const DraftGroup&)>& is_small) {
  if (groups.size() > 1) Unifier(groups, drafts, is_small).run();
}

}  // namespace tonnx::python
