// parse.cpp - reads shapes and sizes that are given as text.
#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>

#include "cli/error.h"

namespace tonnx::cli {
namespace {

/// The only input that has no value of its own.
std::string only_input(const Model& model, const std::string& text) {
  std::vector<std::string> names;
  for (const ValueView& input : model.graph().inputs()) names.emplace_back(input.name());
  require(names.size() == 1, "'{}' does not say which input it is the shape of; there are: {}", text,
          nearest_list(text, names));
  return names[0];
}

std::pair<std::string, std::vector<int64_t>> parse_shape(const std::string& text, const Model* model) {
  const size_t colon = text.rfind(':');
  const bool is_named = colon != std::string::npos && colon > 0;
  require(is_named || (model != nullptr && colon == std::string::npos),
          "'{}' is not a shape of the form name:1,3,224,224", text);
  std::vector<int64_t> dims;
  const size_t first = is_named ? colon + 1 : 0;
  for (size_t start = first; start <= text.size() && first < text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string item = text.substr(start, end - start);
    int64_t value = -1;
    if (item != "?") {
      const auto [last, error] = std::from_chars(item.data(), item.data() + item.size(), value);
      require(error == std::errc() && last == item.data() + item.size() && value >= -1, "'{}' in '{}' is not a size",
              item, text);
    }
    dims.push_back(value);
    start = end + 1;
  }
  return {is_named ? text.substr(0, colon) : only_input(*model, text), dims};
}

}  // namespace

InputShapes parse_shapes(const std::vector<std::string>& texts, const Model* model) {
  std::map<std::string, std::vector<int64_t>> result;
  for (const std::string& text : texts) {
    const auto shape = parse_shape(text, model);
    require(result.insert(shape).second, "input '{}' is given two shapes", shape.first);
  }
  return {result.begin(), result.end()};
}

void add_missing(InputShapes& shapes, const InputShapes& more) {
  std::map<std::string, std::vector<int64_t>> all(shapes.begin(), shapes.end());
  all.insert(more.begin(), more.end());
  shapes.assign(all.begin(), all.end());
}

std::vector<std::pair<std::string, DType>> parse_types(const std::vector<std::string>& texts) {
  std::map<std::string, DType> result;
  for (const std::string& text : texts) {
    const size_t colon = text.rfind(':');
    const auto dtype = colon == std::string::npos ? std::nullopt : find_dtype(std::string_view(text).substr(colon + 1));
    require(colon != std::string::npos && colon > 0 && dtype.has_value(), "'{}' is not a type of the form name:int64",
            text);
    require(result.emplace(text.substr(0, colon), *dtype).second, "input '{}' is given two types",
            text.substr(0, colon));
  }
  return {result.begin(), result.end()};
}

void add_limit_option(CLI::App* command, std::vector<std::string>& into) {
  const std::vector<std::string> names = limit_names();
  command
      ->add_option("--limit", into,
                   fmt::format("memory=1G, for example: allow the conversion more, or less, of {}; docs/limits.md says "
                               "what each one is",
                               fmt::join(names, ", ")))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

Limits parse_limits(const std::vector<std::string>& texts) {
  Limits limits;
  for (const std::string& text : texts) limits.push_back(parse_limit(text));
  return limits;
}

}  // namespace tonnx::cli
