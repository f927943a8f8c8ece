// classes.cpp - writes the parts of a model as classes, from the innermost on; what differs between parts that are
// otherwise alike are arguments.
#include "formats/python/classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>

#include "base/join.h"
#include "formats/modules/places.h"
#include "formats/modules/sequences.h"
#include "formats/python/class_names.h"
#include "formats/python/constructors.h"
#include "formats/python/layout.h"
#include "formats/python/number_tokens.h"
#include "formats/python/numbered_runs.h"
#include "formats/python/parameters.h"
#include "formats/python/shared_sequences.h"
#include "ops/frame/python_names.h"

namespace tonnx::python {
namespace {

using Kind = ModulePart::Kind;

constexpr ptrdiff_t kMostParameters = 8;  // parts that differ in more numbers have classes of their own
constexpr size_t kShortRun = 3;           // so many equal members of a list are written as a loop
constexpr size_t kLongRun = 5;            // so many attributes

struct Draft {
  const ModulePart* part = nullptr;
  std::vector<Statement> members;
  Forward forward;
  std::vector<NumberedText> lines;  // of the members, then of forward
  std::string shape;                // all of it but the numbers
  std::vector<std::string> numbers;
};

class ClassWriter {
 public:
  explicit ClassWriter(const std::vector<ExternalModule>& external) : external_(external) {
    for (const std::string_view name : {"Model", "OrderedDict", "Path", "QuantLinear"}) names_.reserve(name);
  }

  std::vector<ClassText> run(const ModulePart& model) {
    std::map<int, std::vector<const ModulePart*>> levels;
    find_levels(model, levels);
    for (const auto& [level, parts] : levels) write_level(parts);
    ClassText text{.name = "Model"};
    text.members = member_lines(model);
    text.has_forward = true;
    text.forward = write_forward(*model.graph, model.calls, first_state(model), /*is_model=*/true);
    result_.push_back(std::move(text));
    share_sequences(result_, [this](const std::string& word) { return class_name(word); }, standards_);
    for (ClassText& each : result_) {
      for (Statement& member : each.members) member.text = without_standards(member.text, standards_);
    }
    return std::move(result_);
  }

 private:
  /// How many classes stand inside one another; the model itself is in no list.
  int find_levels(const ModulePart& part, std::map<int, std::vector<const ModulePart*>>& levels) {
    int inside = 0;
    for (const Member& member : part.members) {
      if (member.part) inside = std::max(inside, find_levels(*member.part, levels));
    }
    if (part.kind != Kind::Class) return inside;
    if (!part.path.empty()) levels[inside].push_back(&part);
    return inside + 1;
  }

  std::string constructor(const Member& member) const {
    if (member.layer) return fmt::format("{}({})", member.layer->spec.type, full_arguments(member.layer->spec));
    if (member.external >= 0 && static_cast<size_t>(member.external) < external_.size())
      return external_[static_cast<size_t>(member.external)].constructor;
    return member.part ? constructor(*member.part) : member.plain;
  }

  std::string constructor(const ModulePart& part) const {
    if (part.kind == Kind::Class) return constructors_.at(&part);
    std::vector<std::string> items;
    if (part.kind == Kind::Dict) {
      std::vector<std::string> names;
      for (const Member& member : part.members) {
        names.push_back(member.name);
        items.push_back(constructor(member));
      }
      return fmt::format("nn.ModuleDict({})", dict_text(names, items));
    }
    for (const Member& member : part.members) {
      const size_t index = std::stoul(member.name);
      while (items.size() < index) items.emplace_back("nn.Identity()");
      items.push_back(constructor(member));
    }
    const bool is_list = part.kind == Kind::List;
    const std::vector<Run> runs = find_runs({}, items, kShortRun);
    std::vector<std::string> texts;
    for (const Run& run : runs) {
      const std::string all = fmt::format("{} for {} in {}", run.item, run.is_same ? "_" : "i", run.range);
      if (is_list && runs.size() == 1 && run.count > 1) return fmt::format("nn.ModuleList({})", all);
      texts.push_back(run.count == 1 ? run.item : fmt::format("*({})", all));
    }
    return is_list ? fmt::format("nn.ModuleList([{}])", joined(texts))
                   : fmt::format("nn.Sequential({})", joined(texts));
  }

  /// `"conv": nn.Conv2d(3, 8, 1)` one by one, and those with numbers together.
  static std::string dict_text(const std::vector<std::string>& names, const std::vector<std::string>& items) {
    std::vector<std::string> texts;
    for (const Run& run : find_runs(names, items, kShortRun)) {
      texts.push_back(run.count == 1 ? fmt::format("\"{}\": {}", names[run.first], run.item)
                                     : fmt::format("**{{{}: {} for i in {}}}", run.name, run.item, run.range));
    }
    return fmt::format("{{{}}}", joined(texts));
  }

  std::vector<Statement> member_lines(const ModulePart& part) const {
    std::vector<Statement> lines;
    std::vector<std::string> names, items;
    for (const Member& member : part.members) {
      if (member.tensor) {
        lines.push_back({0, tensor_line(*member.tensor, member.name)});
      } else {
        names.push_back(member.name);
        items.push_back(constructor(member));
      }
    }
    for (const Run& run : find_runs(names, items, kLongRun)) {
      const std::string& name = names[run.first];
      if (run.count > 1) {
        lines.push_back({0, fmt::format("for i in {}:", run.range)});
        lines.push_back({1, fmt::format("self.add_module({}, {})", run.name, run.item)});
      } else if (is_attribute(name)) {
        lines.push_back({0, fmt::format("self.{} = {}", name, run.item)});
      } else {
        lines.push_back({0, fmt::format("self.add_module(\"{}\", {})", name, run.item)});
      }
    }
    return lines;
  }

  /// A tensor of the part, as its code says it, beside which new ones are made.
  static std::string first_state(const ModulePart& part) {
    for (const StateEntry& tensor : part.calls.tensors) {
      if (!is_generator(tensor)) return tensor.name;
    }
    for (const Submodule& layer : part.calls.submodules) {
      if (!layer.state.empty()) return layer.name + "." + layer.state[0].name;
    }
    return "";
  }

  Draft draft_of(const ModulePart& part) const {
    Draft draft{.part = &part};
    draft.members = member_lines(part);
    if (part.graph) draft.forward = write_forward(*part.graph, part.calls, first_state(part), /*is_model=*/false);
    const auto add = [&](std::string_view mark, const std::string& text) {
      draft.lines.push_back(split_numbers(text));
      const NumberedText& line = draft.lines.back();
      draft.shape += fmt::format("{}{}\n", mark, joined(line.texts, "\x01"));
      draft.numbers.insert(draft.numbers.end(), line.numbers.begin(), line.numbers.end());
    };
    for (const Statement& member : draft.members) add(std::to_string(member.level), member.text);
    draft.shape += fmt::format("({}){}\n", joined(draft.forward.parameters), part.graph ? ":" : "");
    for (const Statement& statement : draft.forward.statements) add(std::to_string(statement.level), statement.text);
    return draft;
  }

  void write_level(const std::vector<const ModulePart*>& parts) {
    std::vector<Draft> drafts;
    std::map<std::string, std::vector<size_t>> alike;
    std::vector<const std::string*> order;
    for (const ModulePart* part : parts) {
      drafts.push_back(draft_of(*part));
      const auto [at, fresh] = alike.try_emplace(drafts.back().shape);
      if (fresh) order.push_back(&at->first);
      at->second.push_back(drafts.size() - 1);
    }
    for (const std::string* shape : order) {
      std::vector<Draft*> group;
      for (const size_t index : alike[*shape]) group.push_back(&drafts[index]);
      write_group(group);
    }
  }

  /// For each number the parameter that it is, or -1 where it is the same in all of them.
  static std::pair<std::vector<int>, std::vector<Parameter>> differing(const std::vector<Draft*>& group) {
    std::vector<int> parameter_of(group[0]->numbers.size(), -1);
    std::vector<Parameter> parameters;
    std::map<std::vector<std::string>, int> known;
    for (size_t i = 0; i < parameter_of.size(); ++i) {
      std::vector<std::string> column;
      for (const Draft* draft : group) column.push_back(draft->numbers[i]);
      if (std::equal(column.begin() + 1, column.end(), column.begin())) continue;
      const auto [at, fresh] = known.try_emplace(std::move(column), static_cast<int>(parameters.size()));
      if (fresh) parameters.push_back({.first = i, .column = at->first});
      parameter_of[i] = at->second;
    }
    return {parameter_of, parameters};
  }

  void write_group(const std::vector<Draft*>& group) {
    if (group.size() == 1 && write_chain(*group[0]->part)) return;
    auto [parameter_of, parameters] = differing(group);
    name_parameters(*group[0], parameter_of, parameters);
    derive_parameters(parameters);
    const auto given = std::count_if(parameters.begin(), parameters.end(),
                                     [](const Parameter& parameter) { return !parameter.is_derived(); });
    if (given <= kMostParameters) {
      write_class(group, parameter_of, parameters);
      return;
    }
    std::map<std::vector<std::string>, std::vector<Draft*>> equal;  // in all numbers
    std::vector<std::vector<Draft*>*> order;
    for (Draft* draft : group) {
      const auto [at, fresh] = equal.try_emplace(draft->numbers);
      if (fresh) order.push_back(&at->second);
      at->second.push_back(draft);
    }
    for (const auto* same : order) write_class(*same, std::vector<int>(parameter_of.size(), -1), {});
  }

  /// A part that is there once, and calls its members one behind the other, needs no class.
  bool write_chain(const ModulePart& part) {
    const std::vector<Member> chain = chain_of(part);
    if (chain.size() < 2) return false;
    std::vector<std::string> names, items;
    for (const Member& member : chain) {
      names.push_back(member.name);
      items.push_back(constructor(member));
    }
    constructors_[&part] = fmt::format("nn.Sequential(OrderedDict({}))", dict_text(names, items));
    return true;
  }

  void write_class(const std::vector<Draft*>& group, const std::vector<int>& parameter_of,
                   const std::vector<Parameter>& parameters) {
    Draft& draft = *group[0];
    ClassText text{.name = class_name(word_of(*draft.part))};
    std::vector<std::string> paths;
    for (const Draft* each : group) paths.push_back(each->part->path);
    text.about = places_text(paths);
    text.has_forward = draft.part->graph != nullptr;
    std::vector<bool> is_kept(parameters.size(), false);  // forward needs it
    size_t number = 0, line = draft.members.size();
    for (size_t i = 0; i < line; ++i) number += draft.lines[i].numbers.size();
    text.forward.parameters = draft.forward.parameters;
    for (const Statement& statement : draft.forward.statements) {
      const auto name_of = [&](size_t index) {
        is_kept[index] = true;
        return "self." + parameters[index].name;
      };
      text.forward.statements.push_back({statement.level, with_names(draft.lines[line++], parameter_of, number, name_of)});
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (is_kept[i]) text.members.push_back({0, fmt::format("self.{} = {}", parameters[i].name, parameters[i].text)});
    }
    number = 0;
    for (size_t i = 0; i < draft.members.size(); ++i) {
      const auto text_of = [&](size_t index) { return parameters[index].text; };
      text.members.push_back({draft.members[i].level, with_names(draft.lines[i], parameter_of, number, text_of)});
    }
    write_signature(group, parameters, text);
    result_.push_back(std::move(text));
  }

  /// Those that are always given stand before those that need not be.
  void write_signature(const std::vector<Draft*>& group, const std::vector<Parameter>& parameters, ClassText& text) {
    std::vector<const Parameter*> given, optional;
    for (const Parameter& parameter : parameters) {
      if (!parameter.is_derived()) (parameter.standard.empty() ? given : optional).push_back(&parameter);
    }
    for (const Parameter* parameter : given) {
      text.parameters.push_back(parameter->name);
      parameters_of_[text.name].push_back(parameter->name);
    }
    for (const Parameter* parameter : optional) {
      text.parameters.push_back(fmt::format("{}={}", parameter->name, parameter->standard));
      standards_[text.name].insert(parameter->name);
    }
    for (size_t i = 0; i < group.size(); ++i) {
      std::vector<std::string> arguments;
      for (const Parameter* parameter : given) arguments.push_back(parameter->column[i]);
      for (const Parameter* parameter : optional)
        arguments.push_back(fmt::format("{}={}", parameter->name, parameter->column[i]));
      constructors_[group[i]->part] = fmt::format("{}({})", text.name, joined(arguments));
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
    for (const std::string& name : module_attributes()) taken.reserve(name);
    for (const Member& member : draft.part->members) taken.reserve(member.name);
    size_t number = 0;
    for (const NumberedText& line : draft.lines) {
      for (size_t i = 0; i < line.numbers.size(); ++i, ++number) {
        if (parameter_of[number] < 0) continue;
        Parameter& parameter = parameters[static_cast<size_t>(parameter_of[number])];
        if (parameter.first != number) continue;
        parameter.name = parameter.text = taken.add(word_for(role_of_number(line, i)));
        const std::string_view standard = standard_value(parameter.name);
        if (std::find(parameter.column.begin(), parameter.column.end(), standard) != parameter.column.end())
          parameter.standard = standard;
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

  const std::vector<ExternalModule>& external_;
  NameSet names_;
  std::unordered_map<const ModulePart*, std::string> constructors_;
  std::unordered_map<std::string, std::vector<std::string>> parameters_of_;  // of the classes so far: those without names
  Standards standards_;
  std::vector<ClassText> result_;
};

}  // namespace

std::string tensor_line(const StateEntry& tensor, const std::string& name) {
  const Tensor& constant = *tensor.value->constant;
  if (is_generator(tensor))
    return fmt::format("self.{} = torch.Generator(\"cpu\").manual_seed({})", name, element_as_int(constant, 0));
  std::vector<std::string> arguments;
  for (const int64_t dim : constant.dims) arguments.push_back(std::to_string(dim));
  if (tensor.transposed) std::swap(arguments[0], arguments[1]);
  if (arguments.empty()) arguments.emplace_back("()");
  if (constant.dtype != DType::Float32) arguments.push_back("dtype=" + python_dtype(constant.dtype));
  const std::string empty = fmt::format("torch.empty({})", joined(arguments));
  if (tensor.trainable) return fmt::format("self.{} = nn.Parameter({})", name, empty);
  return fmt::format("self.register_buffer(\"{}\", {})", name, empty);
}

std::vector<ClassText> write_classes(const ModulePart& model, const std::vector<ExternalModule>& external) {
  return ClassWriter(external).run(model);
}

}  // namespace tonnx::python
