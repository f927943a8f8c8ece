// parameters.cpp - finds parameters that follow from others.
#include "formats/python/classes/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "formats/python/classes/constructors.h"
#include "modules/places.h"

namespace tonnx::python {
namespace {

constexpr int64_t kPlainFactor = 4;  // parameters are so many times as large as others even if there are two of each
constexpr int64_t kMostFactor = 64;  // and so many times where there are more
constexpr size_t kManyValues = 3;
constexpr size_t kTooMany = 64;  // so many are too many, whatever follows from what

using Whole = std::vector<int64_t>;

/// Nothing where one of them is no plain number.
std::optional<Whole> numbers_of(const std::vector<std::string>& column) {
  Whole numbers;
  for (const std::string& text : column) {
    if (!is_index(text)) return std::nullopt;
    numbers.push_back(std::stoll(text));
  }
  return numbers;
}

bool is_half(const Parameter& half, const Parameter& whole) {
  return std::equal(half.column.begin(), half.column.end(), whole.column.begin(),
                    [](const std::string& a, const std::string& b) {
                      return is_index(a) && is_index(b) ? std::stoi(a) == std::stoi(b) / 2 : a == b + " // 2";
                    });
}

/// How many times as large as the others all of them are; 0 where that is no plain number.
int64_t factor_of(const Whole& large, const Whole& small) {
  if (small[0] == 0 || large[0] % small[0] != 0) return 0;
  const int64_t factor = large[0] / small[0];
  for (size_t i = 0; i < large.size(); ++i) {
    if (small[i] == 0 || large[i] % small[i] != 0 || large[i] / small[i] != factor) return 0;
  }
  const size_t values = std::set(small.begin(), small.end()).size();
  return factor <= (values < kManyValues ? kPlainFactor : kMostFactor) ? factor : 0;
}

/// What the numbers are, after others that are given; empty where they do not follow.
std::string derived_text(const Whole& numbers, const Parameter& base, const Whole& base_numbers) {
  if (const int64_t factor = factor_of(numbers, base_numbers); factor > 1)
    return fmt::format("{} * {}", factor, base.name);
  const int64_t factor = factor_of(base_numbers, numbers);
  return factor > 1 ? fmt::format("{} // {}", base.name, factor) : "";
}

void derive_paddings(std::vector<Parameter>& parameters) {
  for (Parameter& padding : parameters) {
    if (!padding.name.starts_with("padding")) continue;
    const auto kernel = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& other) {
      return other.name.starts_with("kernel_size") && is_half(padding, other);
    });
    if (kernel == parameters.end()) continue;
    padding.text = kernel->name + " // 2";
    padding.is_derived = true;
  }
}

/// `channels` of `channels_3`.
std::string word_of_name(const std::string& name) {
  const size_t line = name.rfind('_');
  return line != std::string::npos && is_index(name.substr(line + 1)) ? name.substr(0, line) : name;
}

/// Names that are not numbered any more, since those before them follow from others. `taken` are attributes.
void number_names(std::vector<Parameter>& parameters, std::set<std::string> taken) {
  for (const Parameter& parameter : parameters) {
    if (!parameter.is_derived || parameter.is_kept) taken.insert(parameter.name);
  }
  for (Parameter& parameter : parameters) {
    const std::string old = parameter.name, word = word_of_name(old);
    if (parameter.is_derived || word == old || !taken.insert(word).second) continue;
    parameter.name = word;
    for (Parameter& other : parameters) {
      if (other.text == old || other.text.ends_with("* " + old) || other.text.starts_with(old + " //") ||
          other.text.starts_with(old + " or "))
        other.text.replace(other.text.find(old), old.size(), word);
    }
  }
}

}  // namespace

void give_name(Parameter& parameter, std::string name) {
  parameter.name = parameter.text = std::move(name);
  const std::string_view standard = standard_value(parameter.name);
  if (std::find(parameter.column.begin(), parameter.column.end(), standard) != parameter.column.end())
    parameter.standard = standard;
  const auto is_choice = [](const std::string& value) { return value == "True" || value == "False"; };
  if (parameter.standard.empty() && std::all_of(parameter.column.begin(), parameter.column.end(), is_choice))
    parameter.standard = "False";
}

std::vector<const Parameter*> given_parameters(const std::vector<Parameter>& parameters) {
  std::vector<const Parameter*> given;
  for (const bool is_optional : {false, true}) {
    for (const Parameter& parameter : parameters) {
      if (!parameter.is_derived && parameter.standard.empty() != is_optional) given.push_back(&parameter);
    }
  }
  return given;
}

std::string signature_text(const Parameter& parameter) {
  return parameter.standard.empty() ? parameter.name : fmt::format("{}={}", parameter.name, parameter.standard);
}

std::string argument_text(const Parameter& parameter, size_t part) {
  const std::string& value = parameter.column[part];
  return parameter.standard.empty() ? value : fmt::format("{}={}", parameter.name, value);
}

void derive_parameters(std::vector<Parameter>& parameters, std::set<std::string> attributes) {
  if (parameters.size() > kTooMany) return;
  derive_paddings(parameters);
  std::vector<std::pair<Parameter*, Whole>> order;
  for (Parameter& parameter : parameters) {
    if (parameter.is_derived || parameter.name.starts_with("kernel_size") || !parameter.standard.empty()) continue;
    if (auto numbers = numbers_of(parameter.column)) order.emplace_back(&parameter, std::move(*numbers));
  }
  std::stable_partition(order.begin(), order.end(),
                        [](const auto& each) { return !each.first->name.starts_with("size"); });
  std::vector<const std::pair<Parameter*, Whole>*> given;
  for (const auto& each : order) {
    const auto& [parameter, numbers] = each;
    for (const auto* base : given) {
      std::string text = derived_text(numbers, *base->first, base->second);
      if (text.empty()) continue;
      parameter->text = std::move(text);
      parameter->is_derived = true;
      break;
    }
    if (!parameter->is_derived) given.push_back(&each);
  }
  number_names(parameters, std::move(attributes));
}

}  // namespace tonnx::python
