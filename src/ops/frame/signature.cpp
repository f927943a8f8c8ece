// signature.cpp - parses the signatures of both vocabularies.
#include "ops/frame/signature.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace tonnx {
namespace {

/// Splits at commas that are outside brackets and quotes.
std::vector<std::string_view> split_params(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '(')) ++depth;
    if (!quoted && (c == ']' || c == ')')) --depth;
    if (c != ',' || depth > 0 || quoted) continue;
    std::string_view part = text.substr(start, i - start);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    if (!part.empty()) parts.push_back(part);
    start = i + 1;
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
}

AttrValue parse_default(std::string_view text, bool as_float) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return AttrValue(text == "True");
  if (text.front() == '"') return std::string(text.substr(1, text.size() - 2));
  if (text.front() == '[') {
    std::vector<int64_t> ints;
    std::vector<double> floats;
    for (const std::string_view item : split_params(text.substr(1, text.size() - 2))) {
      ints.push_back(std::strtoll(std::string(item).c_str(), nullptr, 10));
      floats.push_back(std::strtod(std::string(item).c_str(), nullptr));
    }
    return as_float ? AttrValue(std::move(floats)) : AttrValue(std::move(ints));
  }
  if (is_number(text)) {
    const std::string number(text);
    if (as_float || number.find_first_of(".e") != std::string::npos) return std::strtod(number.c_str(), nullptr);
    return static_cast<int64_t>(std::strtoll(number.c_str(), nullptr, 10));
  }
  return std::string(text);  // a name, such as Mean or contiguous_format
}

Param parse_param(std::string_view text) {
  Param param;
  // the type ends at the last space before the name, which ends at '='
  const size_t equals = text.find('=');
  const std::string_view head = text.substr(0, equals);
  const size_t space = head.rfind(' ');
  std::string_view type = head.substr(0, space);
  param.name = space == std::string_view::npos ? "" : std::string(head.substr(space + 1));
  if (type.ends_with("...")) {
    param.variadic = true;
    type.remove_suffix(3);
  }
  if (type.ends_with("?")) {
    param.optional = true;
    type.remove_suffix(1);
  }
  if (const size_t alias = type.find("(a"); alias != std::string_view::npos) {  // Tensor(a!): views and in-place forms
    const size_t close = type.find(')', alias);
    param.type = std::string(type.substr(0, alias)) + std::string(type.substr(close + 1));
  } else {
    param.type = std::string(type);
  }
  if (const size_t bracket = param.type.find('['); bracket != std::string::npos) {
    param.is_list = true;
    param.takes_one = param.type.find("[1]", bracket) == bracket;
    param.list_size = std::strtoul(param.type.c_str() + bracket + 1, nullptr, 10);
    param.type.resize(bracket);
    param.has_gaps = param.type.ends_with('?');
    if (param.has_gaps) param.type.pop_back();
  }
  if (equals != std::string_view::npos) {
    param.has_default = true;
    const bool as_float = param.type == "float" || param.type == "floats";
    param.default_value = parse_default(text.substr(equals + 1), as_float);
  }
  return param;
}

struct Pieces {
  std::string_view name, params, outputs;
};

Pieces split(std::string_view text) {
  const size_t arrow = text.rfind(") -> ");
  const size_t open = text.find('(');
  Pieces pieces{text.substr(0, open), text.substr(open + 1, arrow - open - 1), text.substr(arrow + 5)};
  if (pieces.outputs.starts_with('(')) pieces.outputs = pieces.outputs.substr(1, pieces.outputs.size() - 2);
  return pieces;
}

void set_name(ParsedSignature& signature, std::string_view full) {
  if (const size_t colons = full.find("::"); colons != std::string_view::npos) {
    signature.domain = std::string(full.substr(0, colons));
    full.remove_prefix(colons + 2);
  }
  if (const size_t dot = full.find('.'); dot != std::string_view::npos) {
    signature.overload = std::string(full.substr(dot + 1));
    full = full.substr(0, dot);
  }
  signature.name = std::string(full);
}

int find_param(const std::vector<Param>& params, std::string_view wanted) {
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].name == wanted) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int ParsedSignature::find_input(std::string_view wanted) const { return find_param(inputs, wanted); }
int ParsedSignature::find_attribute(std::string_view wanted) const { return find_param(attributes, wanted); }

ParsedSignature parse_onnx_signature(std::string_view text) {
  ParsedSignature signature;
  const Pieces pieces = split(text);
  set_name(signature, pieces.name);
  bool after_star = false;
  for (const std::string_view part : split_params(pieces.params)) {
    if (part == "*") {
      after_star = true;
    } else {
      (after_star ? signature.attributes : signature.inputs).push_back(parse_param(part));
    }
  }
  for (const std::string_view part : split_params(pieces.outputs)) signature.outputs.push_back(parse_param(part));
  return signature;
}

ParsedSignature parse_aten_signature(std::string_view text) {
  ParsedSignature signature;
  const Pieces pieces = split(text);
  set_name(signature, pieces.name);
  bool after_star = false;
  for (const std::string_view part : split_params(pieces.params)) {
    if (part == "*") {
      after_star = true;
      continue;
    }
    signature.inputs.push_back(parse_param(part));
    signature.inputs.back().keyword_only = after_star;
  }
  for (const std::string_view part : split_params(pieces.outputs)) signature.outputs.push_back(parse_param(part));
  return signature;
}

}  // namespace tonnx
