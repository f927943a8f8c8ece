// classes.cpp - writes the parts of a model as classes, from the innermost on; what differs between parts that are
// otherwise alike are arguments.
#include "formats/python/classes/classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/join.h"
#include "formats/python/classes/constructors.h"
#include "formats/python/classes/drafts.h"
#include "formats/python/classes/levels.h"
#include "formats/python/classes/number_tokens.h"
#include "formats/python/classes/parameters.h"
#include "formats/python/classes/sequences.h"
#include "formats/python/classes/unify.h"
#include "formats/python/layout.h"
#include "formats/python/naming/class_names.h"
#include "modules/sequences.h"
#include "ops/frame/python_names.h"

namespace tonnx::python {
namespace {

using Kind = ModulePart::Kind;

constexpr size_t kMostParameters = 8;  // parts that differ in more numbers have classes of their own
constexpr size_t kIndent = 8;          // of the statements of a constructor

class ClassWriter {
 public:
  explicit ClassWriter(const std::vector<ExternalModule>& external) : drafts_(external) {
    for (const std::string_view name :
         {"Model", "OrderedDict", "Path", "QuantConv1d", "QuantConv2d", "QuantConv3d", "QuantLinear"})
      names_.reserve(name);
  }

  std::vector<ClassText> run(ModulePart& model) {
    for (const std::vector<ModulePart*>& parts : levels_of(model)) write_level(parts);
    ClassText text{.name = "Model"};
    text.members = drafts_.member_lines(model);
    text.has_forward = true;
    text.forward = drafts_.code_of(model, /*is_model=*/true);
    result_.push_back(std::move(text));
    inline_chains(result_, standards_);
    share_sequences(
        result_, [this](const std::string& word) { return class_name(word); }, standards_);
    for (ClassText& each : result_) {
      for (Statement& member : each.members) member.text = without_standards(member.text, standards_);
    }
    return std::move(result_);
  }

 private:
  void write_level(const std::vector<ModulePart*>& parts) {
    std::vector<DraftGroup> groups;
    std::unordered_map<std::string, size_t> alike;
    for (ModulePart* part : parts) {
      Draft draft = drafts_.draft_of(*part);
      const auto [at, fresh] = alike.try_emplace(draft.shape, groups.size());
      if (fresh) groups.emplace_back();
      groups[at->second].push_back(std::move(draft));
    }
    unify_groups(groups, drafts_, [this](const DraftGroup& group) { return signature_of(group).is_small(); });
    for (const DraftGroup& group : groups) write_group(group);
  }

  /// For each number the parameter that it is, or -1 where it is the same in all of them. What may be any number in
  /// some of them is what it is in the others.
  static std::pair<std::vector<int>, std::vector<Parameter>> differing(const DraftGroup& group) {
    std::vector<int> parameter_of(group[0].numbers.size(), -1);
    std::vector<Parameter> parameters;
    std::map<std::vector<std::string>, int> known;
    for (size_t i = 0; i < parameter_of.size(); ++i) {
      std::vector<std::string> column;
      for (const Draft& draft : group) column.push_back(draft.numbers[i]);
      if (matches(column, std::vector(column.size(), given_number(column)))) continue;
      auto at = known.find(column);
      const bool is_open = std::find(column.begin(), column.end(), kAnyNumber) != column.end();
      if (at == known.end() && is_open)
        at = std::find_if(known.begin(), known.end(), [&](const auto& each) { return matches(column, each.first); });
      if (at == known.end()) {
        parameters.push_back({.first = i, .column = column});
        at = known.emplace(std::move(column), static_cast<int>(parameters.size()) - 1).first;
      }
      parameter_of[i] = at->second;
    }
    return {parameter_of, parameters};
  }

  static std::string given_number(const std::vector<std::string>& column) {
    const auto at = std::find_if(column.begin(), column.end(), [](const auto& each) { return each != kAnyNumber; });
    return at == column.end() ? "" : *at;
  }

  static bool matches(const std::vector<std::string>& column, const std::vector<std::string>& other) {
    return std::equal(column.begin(), column.end(), other.begin(),
                      [](const auto& a, const auto& b) { return a == b || a == kAnyNumber; });
  }

  struct Signature {
    std::vector<int> parameter_of;
    std::vector<Parameter> parameters;
    bool is_small() const {
      const bool is_open = std::any_of(parameters.begin(), parameters.end(), [](const Parameter& parameter) {
        return std::find(parameter.column.begin(), parameter.column.end(), kAnyNumber) != parameter.column.end();
      });
      return !is_open && given_parameters(parameters).size() <= kMostParameters;
    }
  };

  Signature signature_of(const DraftGroup& group) const {
    auto [parameter_of, parameters] = differing(group);
    name_parameters(group[0], parameter_of, parameters);
    std::set<std::string> attributes;
    for (const Member& member : group[0].part->members) attributes.insert(member.name);
    derive_parameters(parameters, std::move(attributes));
    return {std::move(parameter_of), std::move(parameters)};
  }

  void write_group(const DraftGroup& group) {
    if (group.size() == 1 && write_chain(*group[0].part)) return;
    const Signature signature = signature_of(group);
    if (signature.is_small()) {
      write_class(group, signature.parameter_of, signature.parameters);
      return;
    }
    std::map<std::vector<std::string>, DraftGroup> equal;  // in all numbers
    std::vector<const DraftGroup*> order;
    for (const Draft& draft : group) {
      const auto [at, fresh] = equal.try_emplace(draft.numbers);
      if (fresh) order.push_back(&at->second);
      at->second.push_back(draft);
    }
    for (const DraftGroup* same : order) write_class(*same, std::vector<int>(signature.parameter_of.size(), -1), {});
  }

  /// A part that is there once, and calls its members one behind the other, needs no class.
  bool write_chain(const ModulePart& part) {
    const std::vector<Member> chain = calls_children(part) ? part.members : chain_of(part);
    if (chain.empty()) return false;
    drafts_.set_constructor(part, chain_text(chain));
    return true;
  }

  /// `nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 8, 1), act=nn.ReLU()))`
  std::string chain_text(const std::vector<Member>& chain) const {
    std::vector<std::string> names, items;
    for (const Member& member : chain) {
      names.push_back(member.name);
      items.push_back(is_around_one(member) ? chain_text(member.part->members) : drafts_.constructor(member));
    }
    return fmt::format("nn.Sequential(OrderedDict({}))", Drafts::keywords_text(names, items));
  }

  /// Whether the member is there for another one, which is called in its place.
  static bool is_around_one(const Member& member) {
    return member.part && member.part->kind == Kind::Dict && member.part->members.size() == 1;
  }

  /// Whether it calls its members in their order, and nothing else.
  static bool is_chain(const ModulePart& part) {
    if (calls_children(part)) return true;
    const std::vector<Member> chain = chain_of(part);
    return !chain.empty() && std::none_of(chain.begin(), chain.end(), is_around_one) &&
           std::equal(chain.begin(), chain.end(), part.members.begin(), part.members.end(),
                      [](const Member& a, const Member& b) { return a.name == b.name; });
  }

  void write_class(const DraftGroup& group, const std::vector<int>& parameter_of,
                   const std::vector<Parameter>& parameters) {
    const Draft& draft = group[0];
    ClassText text{.name = class_name(word_of(*draft.part))};
    std::vector<std::string> paths;
    for (const Draft& each : group) paths.push_back(each.part->path);
    text.about = places_text(paths);
    text.is_chain = draft.form.optional_member.empty() && is_chain(*draft.part);
    text.has_forward = draft.part->graph != nullptr && !text.is_chain;
    size_t number = 0, line = draft.members.size();
    for (size_t i = 0; i < line; ++i) number += draft.lines[i].numbers.size();
    const auto named = [&](const Forward& code) {
      Forward result{code.parameters, {}};
      for (const Statement& statement : code.statements) {
        const auto name_of = [&](size_t index) { return "self." + parameters[index].name; };
        result.statements.push_back(
            {statement.level, space_slices(with_names(draft.lines[line++], parameter_of, number, name_of))});
      }
      return result;
    };
    text.forward = named(draft.forward);
    for (const MethodText& method : draft.others) text.others.push_back({method.name, named(method.code)});
    for (const Parameter& parameter : parameters) {
      if (parameter.is_kept) text.members.push_back({0, fmt::format("self.{} = {}", parameter.name, parameter.text)});
    }
    number = 0;
    for (size_t i = 0; i < draft.members.size(); ++i) {
      const auto text_of = [&](size_t index) { return parameters[index].text; };
      text.members.push_back({draft.members[i].level, with_names(draft.lines[i], parameter_of, number, text_of)});
    }
    if (!draft.form.made_inside.texts.empty()) break_choice(text.members);
    if (is_plain(draft.form)) text.chain = chain_items(group, text.members);
    write_signature(group, parameters, text);
    result_.push_back(std::move(text));
  }

  static bool is_plain(const Form& form) {
    return !form.has_optional_add && form.optional_member.empty() && form.given_member.empty();
  }

  /// What the parts of a class call one behind the other; empty where that is not all that they do.
  static std::vector<ChainItem> chain_items(const DraftGroup& group, const std::vector<Statement>& members) {
    const std::vector<Member> chain = chain_of(*group[0].part);
    std::map<std::string, std::string> made;  // by their names
    for (const Statement& member : members) {
      const size_t equals = member.text.find(" = ");
      if (member.level == 0 && member.text.starts_with("self.") && equals != std::string::npos)
        made[member.text.substr(5, equals - 5)] = member.text.substr(equals + 3);
    }
    const bool are_alike = std::all_of(group.begin() + 1, group.end(), [&](const Draft& draft) {
      const std::vector<Member> other = chain_of(*draft.part);
      return std::equal(chain.begin(), chain.end(), other.begin(), other.end(),
                        [](const Member& a, const Member& b) { return a.plain == b.plain; });
    });
    if (!are_alike || made.size() != members.size()) return {};
    std::vector<ChainItem> items;
    for (const Member& member : chain) {
      if (is_around_one(member) || (member.plain.empty() && !made.contains(member.name))) return {};
      items.push_back({member.name, member.plain.empty() ? made.at(member.name) : member.plain});
    }
    return items;
  }

  /// `self.a = x if a else nn.Identity()` as an if of its own, where it is long.
  void break_choice(std::vector<Statement>& members) const {
    const std::string line = without_standards(members.back().text, standards_);
    if (line.size() + kIndent <= kLineWidth) return;
    const size_t choice = line.rfind(" if "), otherwise = line.rfind(" else "), equals = line.find(" = ");
    members.back().text = fmt::format("{} = {}", line.substr(0, equals), line.substr(otherwise + 6));
    members.push_back({0, fmt::format("if {}:", line.substr(choice + 4, otherwise - choice - 4))});
    members.push_back({1, line.substr(0, choice)});
  }

  void write_signature(const DraftGroup& group, const std::vector<Parameter>& parameters, ClassText& text) {
    const std::vector<const Parameter*> given = given_parameters(parameters);
    for (const Parameter* parameter : given) {
      text.parameters.push_back(signature_text(*parameter));
      if (parameter->standard.empty())
        parameters_of_[text.name].push_back(parameter->name);
      else
        standards_[text.name][parameter->name] = parameter->standard;
    }
    for (size_t i = 0; i < group.size(); ++i) {
      std::vector<std::string> arguments;
      for (const Parameter* parameter : given) arguments.push_back(argument_text(*parameter, i));
      drafts_.set_constructor(*group[i].part, fmt::format("{}({})", text.name, joined(arguments)));
    }
  }

  static std::string word_of(const ModulePart& part) {
    const std::string given = identifier(part.class_name);
    return given.empty() || given != part.class_name ? class_word(part.path) : given;
  }

  /// `Block`, `Block2` and so on.
  std::string class_name(const std::string& word) {
    std::string name = word;
    for (int number = 2; names_.contains(name); ++number) name = fmt::format("{}{}", word, number);
    names_.reserve(name);
    return name;
  }

  /// The line, with names in place of the numbers that are parameters.
  template <typename F>
  static std::string with_names(const NumberedText& line, const std::vector<int>& parameter_of, size_t& number,
                                const F& name_of) {
    std::string text = line.texts[0];
    for (size_t i = 0; i < line.numbers.size(); ++i, ++number) {
      const int index = parameter_of[number];
      text += index < 0 ? line.numbers[i] : name_of(static_cast<size_t>(index));
      text += line.texts[i + 1];
    }
    return text;
  }

  void name_parameters(const Draft& draft, const std::vector<int>& parameter_of,
                       std::vector<Parameter>& parameters) const {
    NameSet taken;
    taken.reserve_module_attributes();
    for (const Member& member : draft.part->members) {
      if (member.name != draft.form.optional_member && member.name != draft.form.given_member)
        taken.reserve(member.name);
    }
    size_t number = 0, at = 0;
    for (const NumberedText& line : draft.lines) {
      const bool is_forward = at++ >= draft.members.size();
      for (size_t i = 0; i < line.numbers.size(); ++i, ++number) {
        if (parameter_of[number] < 0) continue;
        Parameter& parameter = parameters[static_cast<size_t>(parameter_of[number])];
        if (is_forward) parameter.is_kept = true;
        if (parameter.first != number) continue;
        give_name(parameter, taken.add(word_for(role_of_number(line, i))));
        if (at != draft.members.size() || draft.form.optional_member.empty() || i + 1 < line.numbers.size()) continue;
        const bool is_flag = !draft.form.made_inside.texts.empty();
        parameter.name = parameter.text = taken.add(draft.form.optional_member);
        parameter.standard = is_flag ? "False" : kNoMember;
        if (!is_flag) parameter.text += " or nn.Identity()";
      }
    }
  }

  std::string word_for(const NumberRole& role) const {
    if (!role.keyword.empty()) return identifier(role.keyword);
    const auto position = static_cast<size_t>(role.position);
    if (const std::string_view name = argument_name(role.function, position); !name.empty()) return std::string(name);
    if (const auto at = parameters_of_.find(role.function); at != parameters_of_.end() && position < at->second.size())
      return at->second[position];
    return "size";
  }

  Drafts drafts_;
  NameSet names_;
  std::unordered_map<std::string, std::vector<std::string>>
      parameters_of_;  // of the classes so far: those without names
  Standards standards_;
  std::vector<ClassText> result_;
};

}  // namespace

std::vector<ClassText> write_classes(ModulePart& model, const std::vector<ExternalModule>& external) {
  return ClassWriter(external).run(model);
}

}  // namespace tonnx::python
