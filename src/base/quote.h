// quote.h - names and texts in one line of readable characters, and back.
#pragma once
#include <string>
#include <string_view>

namespace tonnx {

/// In double quotes; `\"`, `\\`, `\n`, `\t`, and `\xNN` for bytes that are neither printable nor valid UTF-8.
std::string quoted(std::string_view text);

/// Letters, digits and underscores, in parts that dots join; the first character is no digit.
bool is_word(std::string_view text);
inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
std::string word_or_quoted(std::string_view text);

}  // namespace tonnx
