// quote.cpp - escapes what would break a line, or the terminal that shows it.
#include "base/quote.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace tonnx {
std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const size_t length = visible_length(text);
    if (text[0] == '"' || text[0] == '\\') {
      result += '\\';
      result += text[0];
    } else if (text[0] == '\n' || text[0] == '\t') {
      result += text[0] == '\n' ? "\\n" : "\\t";
    } else if (length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + '"';
}

bool is_word(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool joins = text[i] == '.' && i > 0 && i + 1 < text.size() && text[i - 1] != '.';
    if (!is_word_char(text[i]) && !joins) return false;
  }
  return true;
}

std::string word_or_quoted(std::string_view text) { return is_word(text) ? std::string(text) : quoted(text); }

}  // namespace tonnx
