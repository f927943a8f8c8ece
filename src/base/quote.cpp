// quote.cpp - escapes what would break a line, or the terminal that shows it.
#include "base/quote.h"

#include <fmt/format.h>

namespace tonnx {
namespace {

/// How many bytes the UTF-8 character at the front takes; 0 where it is none, or a control character.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7F ? 1 : 0;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xED && byte(1) > 0x9F;
  const bool too_large = byte(0) == 0xF4 && byte(1) > 0x8F;
  const bool c1_control = byte(0) == 0xC2 && byte(1) < 0xA0;
  return overlong || surrogate || too_large || c1_control ? 0 : length;
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
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
