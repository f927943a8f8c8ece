// number_tokens.cpp - finds numbers in code, and what they are there for.
#include "formats/python/classes/number_tokens.h"

#include <cctype>

namespace tonnx::python {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

size_t end_of_string(std::string_view code, size_t at) {
  const char quote = code[at++];
  while (at < code.size() && code[at] != quote) at += code[at] == '\\' ? 2 : 1;
  return std::min(at + 1, code.size());
}

/// Behind a number that begins there: `3`, `0.5`, `1e-05`.
size_t end_of_number(std::string_view code, size_t at) {
  while (at < code.size() && (is_name_char(code[at]) || code[at] == '.')) {
    const bool is_exponent = code[at] == 'e' && at + 1 < code.size() && (code[at + 1] == '-' || code[at + 1] == '+');
    at += is_exponent ? 2 : 1;
  }
  return at;
}

/// Whether the text ends with `dtype=` or `dtype_2=`.
bool is_behind_keyword(std::string_view text, std::string_view word) {
  if (!text.ends_with('=')) return false;
  size_t start = text.size() - 1;
  while (start > 0 && is_name_char(text[start - 1])) --start;
  return text.substr(start).starts_with(word);
}

}  // namespace

NumberedText split_numbers(std::string_view code) {
  NumberedText result;
  std::string text;
  for (size_t at = 0; at < code.size();) {
    size_t end = at + 1;
    bool is_value = false;
    if (code[at] == '"' || code[at] == '\'') {
      end = end_of_string(code, at);
    } else if (is_digit(code[at])) {
      end = end_of_number(code, at);
      is_value = true;
    } else if (is_name_char(code[at])) {
      while (end < code.size() && is_name_char(code[end])) ++end;
      is_value = code.substr(at, end - at) == "True" || code.substr(at, end - at) == "False";
      if (code.substr(at).starts_with("torch.") && is_behind_keyword(text, "dtype")) {
        end = end_of_number(code, at);
        is_value = true;
      }
    }
    if (is_value) {
      result.texts.push_back(std::move(text));
      text.clear();
      result.numbers.emplace_back(code.substr(at, end - at));
      at = end;
      continue;
    }
    text += code.substr(at, end - at);
    at = end;
  }
  result.texts.push_back(std::move(text));
  return result;
}

NumberRole role_of_number(const NumberedText& text, size_t number) {
  NumberRole role;
  if (number == 0 && text.texts[0].starts_with("self.") && text.texts[0].ends_with(" = ")) {
    role.keyword = text.texts[0].substr(5, text.texts[0].size() - 8);
    return role;
  }
  int depth = 0;  // of brackets around what is read, backwards
  bool is_first = true;
  for (size_t i = number + 1; i-- > 0; is_first = false) {
    const std::string& part = text.texts[i];
    for (size_t at = part.size(); at-- > 0;) {
      const char c = part[at];
      if (c == ')' || c == ']') ++depth;
      if (c == ',' && depth == 0) ++role.position;
      if (c == '=' && depth == 0 && role.position == 0 && is_first && role.keyword.empty()) {
        size_t start = at;
        while (start > 0 && is_name_char(part[start - 1])) --start;
        role.keyword = part.substr(start, at - start);
      }
      if ((c == '(' || c == '[') && depth-- == 0) {
        size_t start = at;
        while (start > 0 && (is_name_char(part[start - 1]) || part[start - 1] == '.')) --start;
        role.function = part.substr(start, at - start);
        if (!role.function.empty() || c == '[') return role;
        role.position = 0;  // a tuple, which is an argument itself
        depth = 0;
      }
    }
  }
  return role;
}

}  // namespace tonnx::python
