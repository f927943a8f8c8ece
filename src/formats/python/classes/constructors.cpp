// constructors.cpp - the arguments of PyTorch's layers, in full and in short.
#include "formats/python/classes/constructors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "base/join.h"

namespace tonnx::python {
namespace {

struct Standard {
  std::string_view name, value;
};
/// Of convolutions, in their order; linear layers have the last one.
constexpr Standard kStandards[] = {
    {"stride", "1"}, {"padding", "0"}, {"dilation", "1"}, {"groups", "1"}, {"bias", "True"}};
/// Of parameters, after their names.
constexpr Standard kNamed[] = {{"stride", "1"}, {"padding", "0"}, {"dilation", "1"},
                               {"groups", "1"}, {"bias", "True"}, {"dtype", "torch.uint8"}};
constexpr Standard kOfQuantLinear[] = {{"bias", "False"}, {"dtype", "torch.uint8"}};
constexpr Standard kOfQuantConv[] = {{"stride", "1"},  {"padding", "0"},   {"dilation", "1"},       {"groups", "1"},
                                     {"bias", "True"}, {"floor", "False"}, {"dtype", "torch.uint8"}};

bool is_path_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

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
      {"nn.MultiheadAttention", {"features", "heads"}},
      {"nn.LSTM", {"input_size", "hidden_size"}},
      {"nn.GRU", {"input_size", "hidden_size"}},
      {"nn.RNN", {"input_size", "hidden_size"}},
      {"QuantLinear", {"in_features", "out_features"}},
      {"QuantConv1d", {"in_channels", "out_channels", "kernel_size"}},
      {"QuantConv2d", {"in_channels", "out_channels", "kernel_size"}},
      {"QuantConv3d", {"in_channels", "out_channels", "kernel_size"}},
      {"range", {"count"}},
  };
  return names;
}

/// The arguments that a layer has, whether they are said or not.
std::span<const Standard> standards_of(std::string_view layer) {
  if (layer.starts_with("nn.Conv")) return kStandards;
  if (layer == "nn.Linear") return std::span(kStandards).last(1);
  if (layer == "QuantLinear") return kOfQuantLinear;
  if (layer.starts_with("QuantConv")) return kOfQuantConv;
  return {};
}

/// The function that a place inside its brackets belongs to.
std::string_view function_around(std::string_view text, size_t at) {
  for (int depth = 0; at > 0;) {
    const char c = text[--at];
    if (c == ')' || c == ']' || c == '}') ++depth;
    if ((c == '(' || c == '[' || c == '{') && depth-- == 0) break;
  }
  size_t start = at;
  while (start > 0 && is_path_char(text[start - 1])) --start;
  return text.substr(start, at - start);
}

/// What the argument of that function is where it is left out; empty where it is to be said.
std::string_view standard_of(std::string_view function, const std::string& argument, const Standards& own) {
  for (const auto& [name, value] : standards_of(function)) {
    if (argument == name) return value;
  }
  const auto known = own.find(function);
  if (known == own.end()) return "";
  const auto value = known->second.find(argument);
  return value == known->second.end() ? std::string_view() : value->second;
}

}  // namespace

std::string_view standard_value(std::string_view argument) {
  if (argument == "shortcut") return "True";
  for (const auto& [name, value] : kNamed) {
    if (argument == name || (argument.starts_with(name) && argument[name.size()] == '_')) return value;
  }
  return "";
}

std::string_view argument_name(std::string_view layer, size_t position) {
  const auto at = argument_names().find(layer);
  return at == argument_names().end() || position >= at->second.size() ? "" : at->second[position];
}

size_t matching_bracket(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at;
  }
  return std::string::npos;
}

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
  const std::span<const Standard> standards = standards_of(spec.type);
  if (standards.empty()) return spec.arguments;
  std::vector<std::string> given = split_arguments(spec.arguments), others;
  for (const auto& [name, value] : standards) {
    const auto at = std::find_if(given.begin(), given.end(), [&](const std::string& argument) {
      return argument.size() > name.size() && argument.starts_with(name) && argument[name.size()] == '=';
    });
    if (at != given.end()) {
      others.push_back(std::move(*at));
      given.erase(at);
    } else {
      others.push_back(fmt::format("{}={}", name, value));
    }
  }
  const auto keyword = std::find_if(
      given.begin(), given.end(), [](const std::string& argument) { return argument.find('=') != std::string::npos; });
  given.insert(keyword, others.begin(), others.end());
  return joined(given);
}

std::string without_standards(const std::string& text, const Standards& own) {
  std::string result;
  size_t taken = 0;  // so much of the text is in the result, or left out
  for (size_t at = 0; (at = text.find_first_of(",(", at)) != std::string::npos;) {
    const size_t start = at + (text[at] == '(' ? 1 : 2);
    size_t end = std::min(start, text.size());
    while (end < text.size() && is_path_char(text[end])) ++end;
    ++at;
    if (end == start || end >= text.size() || text[end] != '=') continue;
    const std::string_view value = standard_of(function_around(text, start), text.substr(start, end - start), own);
    const size_t behind = end + 1 + value.size();
    if (value.empty() || behind >= text.size() || text.compare(end + 1, value.size(), value) != 0) continue;
    if (text[behind] != ',' && text[behind] != ')') continue;
    result.append(text, taken, start - taken);
    if (text[behind] == ')' && result.ends_with(", ")) result.resize(result.size() - 2);
    taken = text[behind] == ',' ? behind + 2 : behind;
    at = behind;
  }
  return result.append(text, taken);
}

}  // namespace tonnx::python
