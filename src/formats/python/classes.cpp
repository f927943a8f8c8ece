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
#include "formats/python/layout.h"
#include "formats/python/number_tokens.h"
#include "ops/frame/python_names.h"

namespace tonnx::python {
namespace {

using Kind = ModulePart::Kind;

constexpr size_t kMostParameters = 6;  // parts that differ in more numbers have classes of their own
constexpr size_t kShortRun = 3;        // so many equal members are written as a loop

/// What the arguments of PyTorch's layers are, in their order.
const std::map<std::string_view, std::vector<std::string_view>>& argument_names() {
  static const std::map<std::string_view, std::vector<std::string_view>> names{
      {"nn.Linear", {"in_features", "out_features"}},
      {"nn.Conv1d", {"in_channels", "out_channels", "kernel_size"}},
      {"nn.Conv2d", {"in_channels", "out_channels", "kernel_size"}},
      {"nn.Conv3d", {"in_channels", "out_channels", "kernel_size"}},
      {"nn.ConvTranspose1d", {"in_channels", "out_channels", "kernel_size"}},
      {"nn.ConvTranspose2d", {"in_channels", "out_channels", "kernel_size"}},
      {"nn.ConvTranspose3d", {"in_channels", "out_channels", "kernel_size"}},
      {"nn.BatchNorm1d", {"channels"}},
      {"nn.BatchNorm2d", {"channels"}},
      {"nn.BatchNorm3d", {"channels"}},
      {"nn.InstanceNorm1d", {"channels"}},
      {"nn.InstanceNorm2d", {"channels"}},
      {"nn.InstanceNorm3d", {"channels"}},
      {"nn.GroupNorm", {"groups", "channels"}},
      {"nn.LayerNorm", {"features"}},
      {"nn.Embedding", {"count", "features"}},
      {"nn.LSTM", {"input_size", "hidden_size"}},
      {"nn.GRU", {"input_size", "hidden_size"}},
      {"nn.RNN", {"input_size", "hidden_size"}},
  };
  return names;
}

/// `encoder_layer_3` gives `EncoderLayer`; what says nothing gives `Block`.
std::string class_word(const std::string& path) {
  std::string word;
  bool is_numbered = false;  // of blocks that have numbers in places that have numbers
  for (size_t end = path.size(); word.empty() && end != std::string::npos;) {
    const size_t dot = end == 0 ? std::string::npos : path.rfind('.', end - 1);
    const size_t start = dot == std::string::npos ? 0 : dot + 1;
    const std::string part = path.substr(start, end - start);
    if (!is_index(part)) word = is_numbered && std::isdigit(static_cast<unsigned char>(part.back())) ? "block" : part;
    is_numbered = true;
    end = dot;
  }
  while (!word.empty() && (std::isdigit(static_cast<unsigned char>(word.back())) || word.back() == '_'))
    word.pop_back();
  std::string name;
  bool begins = true;
  for (const char c : word) {
    if (c == '_') {
      begins = true;
      continue;
    }
    name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = false;
  }
  const std::string plain = identifier(name);
  return plain.size() < 3 || plain != name ? "Block" : name;
}

/// `encoder.layer.0 to 5`: where the parts of a class are.
std::string places_text(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return paths[0];
  const std::string& a = paths.front();
  const std::string& b = paths.back();
  size_t prefix = 0;
  while (prefix < std::min(a.size(), b.size()) && a[prefix] == b[prefix]) ++prefix;
  while (prefix > 0 && std::isdigit(static_cast<unsigned char>(a[prefix - 1]))) --prefix;
  size_t suffix = 0;
  while (suffix < std::min(a.size(), b.size()) - prefix && a[a.size() - 1 - suffix] == b[b.size() - 1 - suffix])
    ++suffix;
  while (suffix > 0 && std::isdigit(static_cast<unsigned char>(a[a.size() - suffix]))) --suffix;
  const std::string low = a.substr(prefix, a.size() - prefix - suffix),
                    high = b.substr(prefix, b.size() - prefix - suffix);
  if (is_index(low) && is_index(high)) {
    const std::string rest = a.substr(a.size() - suffix);
    return fmt::format("{}{} to {}{}", a.substr(0, prefix), low, high, rest.empty() ? "" : ": " + rest.substr(1));
  }
  return fmt::format("{}, {}{}", paths[0], paths.size() > 2 ? "... " : "", paths.back());
}

/// Arguments of convolutions that are left out where they are 1; until it is known which classes are alike they are
/// said.
constexpr std::string_view kOnes[] = {"stride", "dilation", "groups"};

/// `3, (1, 2), stride=2` one by one.
std::vector<std::string> split_arguments(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
    if (depth == 0 && text[i] == ',' && i + 1 < text.size() && text[i + 1] == ' ') {
      parts.emplace_back();
      ++i;
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

std::string full_arguments(const ModuleSpec& spec) {
  if (!spec.type.starts_with("nn.Conv")) return spec.arguments;
  std::vector<std::string> others, given = split_arguments(spec.arguments);
  const auto take = [&](std::string_view name) {
    const auto at = std::find_if(given.begin(), given.end(), [&](const std::string& argument) {
      return argument.size() > name.size() && argument.starts_with(name) && argument[name.size()] == '=';
    });
    if (at == given.end()) return std::string();
    std::string text = *at;
    given.erase(at);
    return text;
  };
  for (const std::string_view name : {"stride", "padding", "dilation", "groups"}) {
    std::string text = take(name);
    if (text.empty() && std::find(std::begin(kOnes), std::end(kOnes), name) != std::end(kOnes))
      text = fmt::format("{}=1", name);
    if (!text.empty()) others.push_back(std::move(text));
  }
  const auto keyword = std::find_if(
      given.begin(), given.end(), [](const std::string& argument) { return argument.find('=') != std::string::npos; });
  given.insert(keyword, others.begin(), others.end());
  return joined(given);
}

std::string without_ones(std::string text) {
  if (text.find("nn.Conv") == std::string::npos) return text;
  for (const std::string_view name : kOnes) {
    const std::string one = fmt::format(", {}=1", name);
    for (size_t at = 0; (at = text.find(one, at)) != std::string::npos;) {
      const char next = at + one.size() < text.size() ? text[at + one.size()] : ')';
      if (next == ',' || next == ')')
        text.erase(at, one.size());
      else
        at += one.size();
    }
  }
  return text;
}

struct Draft {
  const ModulePart* part = nullptr;
  std::vector<std::string> members;
  Forward forward;
  std::vector<NumberedText> lines;  // of the members, then of forward
  std::string shape;                // all of it but the numbers
  std::vector<std::string> numbers;
};

class ClassWriter {
 public:
  explicit ClassWriter(const std::vector<ExternalModule>& external) : external_(external) {
    for (const std::string_view name : {"Model", "Path", "QuantConv1d", "QuantConv2d", "QuantConv3d", "QuantLinear"})
      names_.reserve(name);
  }

  std::vector<ClassText> run(const ModulePart& model) {
    std::map<int, std::vector<const ModulePart*>> levels;
    find_levels(model, levels);
    for (const auto& [level, parts] : levels) write_level(parts);
    ClassText text{.name = "Model"};
    for (const std::string& line : member_lines(model)) text.members.push_back(without_ones(line));
    text.has_forward = true;
    text.forward = write_forward(*model.graph, model.calls, first_state(model), /*is_model=*/true);
    result_.push_back(std::move(text));
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
      for (const Member& member : part.members)
        items.push_back(fmt::format("\"{}\": {}", member.name, constructor(member)));
      return fmt::format("nn.ModuleDict({{{}}})", joined(items));
    }
    for (const Member& member : part.members) {
      const size_t index = std::stoul(member.name);
      while (items.size() < index) items.emplace_back("nn.Identity()");
      items.push_back(constructor(member));
    }
    const bool is_list = part.kind == Kind::List;
    if (items.size() >= kShortRun && std::equal(items.begin() + 1, items.end(), items.begin())) {
      const std::string all = fmt::format("{} for _ in range({})", items[0], items.size());
      return is_list ? fmt::format("nn.ModuleList({})", all) : fmt::format("nn.Sequential(*({}))", all);
    }
    std::vector<std::string> runs;
    for (size_t i = 0; i < items.size();) {
      size_t end = i + 1;
      while (end < items.size() && items[end] == items[i]) ++end;
      if (end - i >= kShortRun)
        runs.push_back(fmt::format("*({} for _ in range({}))", items[i], end - i));
      else
        runs.insert(runs.end(), items.begin() + static_cast<ptrdiff_t>(i), items.begin() + static_cast<ptrdiff_t>(end));
      i = end;
    }
    return is_list ? fmt::format("nn.ModuleList([{}])", joined(runs)) : fmt::format("nn.Sequential({})", joined(runs));
  }

  std::vector<std::string> member_lines(const ModulePart& part) const {
    std::vector<std::string> lines;
    for (const Member& member : part.members) {
      if (member.tensor)
        lines.push_back(tensor_line(*member.tensor, member.name));
      else if (!is_attribute(member.name))
        lines.push_back(fmt::format("self.add_module(\"{}\", {})", member.name, constructor(member)));
      else
        lines.push_back(fmt::format("self.{} = {}", member.name, constructor(member)));
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
    for (const std::string& member : draft.members) add("", member);
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

  /// The numbers that are not the same in all of them: which parameter each is, and the first place of each parameter.
  static std::pair<std::vector<int>, std::vector<size_t>> differing(const std::vector<Draft*>& group) {
    std::vector<int> parameter(group[0]->numbers.size(), -1);
    std::vector<size_t> first;
    std::map<std::vector<std::string>, int> known;
    for (size_t i = 0; i < parameter.size(); ++i) {
      std::vector<std::string> column;
      for (const Draft* draft : group) column.push_back(draft->numbers[i]);
      if (std::equal(column.begin() + 1, column.end(), column.begin())) continue;
      const auto [at, fresh] = known.try_emplace(std::move(column), static_cast<int>(first.size()));
      if (fresh) first.push_back(i);
      parameter[i] = at->second;
    }
    return {parameter, first};
  }

  void write_group(const std::vector<Draft*>& group) {
    const auto [parameter, first] = differing(group);
    if (first.size() > kMostParameters) {  // those that are equal in all numbers
      std::map<std::vector<std::string>, std::vector<Draft*>> equal;
      std::vector<std::vector<Draft*>*> order;
      for (Draft* draft : group) {
        const auto [at, fresh] = equal.try_emplace(draft->numbers);
        if (fresh) order.push_back(&at->second);
        at->second.push_back(draft);
      }
      for (const auto* same : order) write_class(*same, std::vector<int>(parameter.size(), -1), {});
      return;
    }
    write_class(group, parameter, first);
  }

  void write_class(const std::vector<Draft*>& group, const std::vector<int>& parameter,
                   const std::vector<size_t>& first) {
    Draft& draft = *group[0];
    ClassText text{.name = class_name(word_of(*draft.part))};
    std::vector<std::string> paths;
    for (const Draft* each : group) paths.push_back(each->part->path);
    text.about = places_text(paths);
    text.has_forward = draft.part->graph != nullptr;
    text.parameters = parameter_names(draft, parameter, first);
    parameters_of_[text.name] = text.parameters;
    std::vector<bool> is_kept(first.size(), false);  // forward needs it
    size_t number = 0, line = 0;
    for (; line < draft.members.size(); ++line)
      text.members.push_back(
          without_ones(with_names(draft.lines[line], parameter, number, text.parameters, "", nullptr)));
    text.forward.parameters = draft.forward.parameters;
    for (const Statement& statement : draft.forward.statements) {
      text.forward.statements.push_back(
          {statement.level, with_names(draft.lines[line++], parameter, number, text.parameters, "self.", &is_kept)});
    }
    for (size_t i = is_kept.size(); i-- > 0;) {
      if (is_kept[i])
        text.members.insert(text.members.begin(), fmt::format("self.{} = {}", text.parameters[i], text.parameters[i]));
    }
    for (const Draft* each : group) {
      std::vector<std::string> arguments;
      for (const size_t at : first) arguments.push_back(each->numbers[at]);
      constructors_[each->part] = fmt::format("{}({})", text.name, joined(arguments));
    }
    result_.push_back(std::move(text));
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

  /// The line, with parameters in place of the numbers that they stand for.
  static std::string with_names(const NumberedText& line, const std::vector<int>& parameter, size_t& number,
                                const std::vector<std::string>& names, std::string_view prefix,
                                std::vector<bool>* is_kept) {
    std::string text = line.texts[0];
    for (size_t i = 0; i < line.numbers.size(); ++i, ++number) {
      const int index = parameter[number];
      if (index < 0) {
        text += line.numbers[i];
      } else {
        text += fmt::format("{}{}", prefix, names[static_cast<size_t>(index)]);
        if (is_kept) (*is_kept)[static_cast<size_t>(index)] = true;
      }
      text += line.texts[i + 1];
    }
    return text;
  }

  std::vector<std::string> parameter_names(const Draft& draft, const std::vector<int>& parameter,
                                           const std::vector<size_t>& first) const {
    NameSet taken;
    for (const std::string& name : module_attributes()) taken.reserve(name);
    for (const Member& member : draft.part->members) taken.reserve(member.name);
    std::vector<std::string> names(first.size());
    size_t number = 0;
    for (const NumberedText& line : draft.lines) {
      for (size_t i = 0; i < line.numbers.size(); ++i, ++number) {
        const int index = parameter[number];
        if (index < 0 || first[static_cast<size_t>(index)] != number) continue;
        names[static_cast<size_t>(index)] = taken.add(word_for(role_of_number(line, i)));
      }
    }
    return names;
  }

  std::string word_for(const NumberRole& role) const {
    if (!role.keyword.empty()) return identifier(role.keyword);
    const auto position = static_cast<size_t>(role.position);
    if (const auto at = argument_names().find(role.function);
        at != argument_names().end() && position < at->second.size())
      return std::string(at->second[position]);
    if (const auto at = parameters_of_.find(role.function); at != parameters_of_.end() && position < at->second.size())
      return at->second[position];
    return "size";
  }

  const std::vector<ExternalModule>& external_;
  NameSet names_;
  std::unordered_map<const ModulePart*, std::string> constructors_;
  std::unordered_map<std::string, std::vector<std::string>> parameters_of_;  // of the classes so far
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
