// drafts.cpp - the statements of a part's constructor, and of its forward.
#include "formats/python/classes/drafts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/join.h"
#include "formats/python/classes/constructors.h"
#include "formats/python/classes/numbered_runs.h"
#include "modules/places.h"
#include "ops/frame/python_names.h"

namespace tonnx::python {
namespace {

using Kind = ModulePart::Kind;

constexpr size_t kShortRun = 3;  // so many equal members of a list are written as a loop
constexpr size_t kLongRun = 5;   // so many attributes

/// A tensor of the method, as its code says it, beside which new ones are made.
std::string first_state(const Method& method) {
  for (const StateEntry& tensor : method.calls.tensors) {
    if (!is_generator(tensor)) return tensor.name;
  }
  for (const Submodule& layer : method.calls.submodules) {
    if (!layer.state.empty()) return layer.name + "." + layer.state[0].name;
  }
  return "";
}

std::string optional_line(const std::string& member, const std::string& constructor) {
  return fmt::format("self.{} = {}", member, constructor);
}

/// All that the line sets is one value.
NumberedText value_as_number(const std::string& line) {
  const size_t equals = line.find(" = ") + 3;
  return {{line.substr(0, equals), ""}, {line.substr(equals)}};
}

/// The one value of the line is all that it sets; or a flag, and the numbers that the member is made with.
NumberedText optional_numbers(const std::string& line, const Form& form) {
  if (form.made_inside.texts.empty()) return value_as_number(line);
  if (!line.ends_with(fmt::format(" = {}", kNoMember))) return numbers_with_flag(line);
  NumberedText text = form.made_inside;
  for (std::string& number : text.numbers) number = kAnyNumber;
  text.numbers.back() = "False";
  return text;
}

/// `{f"layer{i}": Layer() for i in range(6)}`
std::string run_text(const Run& run) {
  return fmt::format("{{{}: {} for {} in {}}}", run.name, run.item, run.variable, run.range);
}

/// `"conv": nn.Conv2d(3, 8, 1)`, or `conv=nn.Conv2d(3, 8, 1)`, and the runs among them.
std::string entries_text(const std::vector<Run>& runs, const std::vector<std::string>& names, bool are_keywords) {
  std::vector<std::string> texts;
  for (const Run& run : runs) {
    const std::string& name = names[run.first];
    const std::string key = are_keywords ? name + "=" : fmt::format("\"{}\": ", name);
    texts.push_back(run.count == 1 ? key + run.item : "**" + run_text(run));
  }
  return joined(texts);
}

}  // namespace

NumberedText numbers_with_flag(const std::string& line) { return split_numbers(line + " if True else nn.Identity()"); }

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

std::string Drafts::constructor(const Member& member) const {
  if (member.layer) return fmt::format("{}({})", member.layer->spec.type, full_arguments(member.layer->spec));
  if (member.external >= 0 && static_cast<size_t>(member.external) < external_.size())
    return external_[static_cast<size_t>(member.external)].constructor;
  return member.part ? constructor(*member.part) : member.plain;
}

std::string Drafts::constructor(const ModulePart& part) const {
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
    const std::string all = fmt::format("{} for {} in {}", run.item, run.variable, run.range);
    if (is_list && runs.size() == 1 && run.count > 1) return fmt::format("nn.ModuleList({})", all);
    texts.push_back(run.count == 1 ? run.item : fmt::format("*({})", all));
  }
  return is_list ? fmt::format("nn.ModuleList([{}])", joined(texts)) : fmt::format("nn.Sequential({})", joined(texts));
}

std::string Drafts::dict_text(const std::vector<std::string>& names, const std::vector<std::string>& items) {
  const std::vector<Run> runs = find_runs(names, items, kShortRun);
  if (runs.size() == 1 && runs[0].count > 1) return run_text(runs[0]);
  return fmt::format("{{{}}}", entries_text(runs, names, false));
}

std::string Drafts::keywords_text(const std::vector<std::string>& names, const std::vector<std::string>& items) {
  const std::vector<Run> runs = find_runs(names, items, kShortRun);
  const bool may_be =
      std::all_of(names.begin(), names.end(), [](const auto& name) { return identifier(name) == name; });
  if (!may_be || (runs.size() == 1 && runs[0].count > 1)) return dict_text(names, items);
  return entries_text(runs, names, true);
}

std::vector<Statement> Drafts::member_lines(const ModulePart& part, const Form& form) const {
  std::vector<Statement> lines;
  std::vector<std::string> names, items;
  std::string optional(kNoMember);
  if (form.has_optional_add)
    lines.push_back({0, fmt::format("self.shortcut = {}", form.has_shortcut ? "True" : "False")});
  for (const Member& member : part.members) {
    if (member.tensor) {
      lines.push_back({0, tensor_line(*member.tensor, member.name)});
    } else if (member.name == form.optional_member) {
      optional = constructor(member);
    } else {
      names.push_back(member.name);
      items.push_back(constructor(member));
    }
  }
  for (const Run& run : find_runs(names, items, kLongRun)) {
    const std::string& name = names[run.first];
    if (run.count > 1) {
      lines.push_back({0, fmt::format("for {} in {}:", run.variable, run.range)});
      lines.push_back({1, fmt::format("self.add_module({}, {})", run.name, run.item)});
    } else if (is_attribute(name)) {
      lines.push_back({0, fmt::format("self.{} = {}", name, run.item)});
    } else {
      lines.push_back({0, fmt::format("self.add_module(\"{}\", {})", name, run.item)});
    }
  }
  if (!form.optional_member.empty()) lines.push_back({0, optional_line(form.optional_member, optional)});
  return lines;
}

Forward Drafts::code_of(const Method& method, bool is_model) const {
  return write_forward(*method.graph, method.calls, first_state(method), is_model);
}

Draft Drafts::draft_of(ModulePart& part, const Form& form) const {
  Draft draft{.part = &part, .form = form};
  draft.members = member_lines(part, form);
  if (part.graph) draft.forward = code_of(part, /*is_model=*/false);
  const auto add = [&](int level, NumberedText line) {
    draft.shape += fmt::format("{}{}\n", level, joined(line.texts, "\x01"));
    draft.numbers.insert(draft.numbers.end(), line.numbers.begin(), line.numbers.end());
    draft.lines.push_back(std::move(line));
  };
  for (size_t i = 0; i < draft.members.size(); ++i) {
    const bool is_optional = !form.optional_member.empty() && i + 1 == draft.members.size();
    const std::string& text = draft.members[i].text;
    const bool is_given = !form.given_member.empty() && text.starts_with(fmt::format("self.{} = ", form.given_member));
    add(draft.members[i].level, is_optional ? optional_numbers(text, form)
                                : is_given  ? value_as_number(text)
                                            : split_numbers(text));
  }
  draft.shape += fmt::format("({}){}\n", joined(draft.forward.parameters), part.graph ? ":" : "");
  for (const Statement& statement : draft.forward.statements) add(statement.level, split_numbers(statement.text));
  for (const auto& method : part.others) {
    draft.others.push_back({method->name, code_of(*method, /*is_model=*/false)});
    const Forward& code = draft.others.back().code;
    draft.shape += fmt::format("{}({}):\n", method->name, joined(code.parameters));
    for (const Statement& statement : code.statements) add(statement.level, split_numbers(statement.text));
  }
  return draft;
}

}  // namespace tonnx::python
