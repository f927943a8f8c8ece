// utf8.cpp - decodes one character at a time, as strictly as Python and JSON readers do.
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tonnx {
namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

}  // namespace

size_t utf8_length(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  const uint8_t second = byte_at(text, 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool too_large = first == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

size_t visible_length(std::string_view text) {
  const size_t length = utf8_length(text);
  const uint8_t first = byte_at(text, 0);
  if (length == 1) return first >= 0x20 && first != 0x7F ? 1 : 0;
  if (length == 2 && first == 0xC2 && byte_at(text, 1) < 0xA0) return 0;  // C1 controls
  if (length == 3 && first == 0xE2) {
    const uint8_t second = byte_at(text, 1);
    const uint8_t third = byte_at(text, 2);
    // U+200B..200F, U+2028..202E, U+2060..206F
    if (second == 0x80 && ((third >= 0x8B && third <= 0x8F) || (third >= 0xA8 && third <= 0xAE))) return 0;
    if (second == 0x81 && third >= 0xA0 && third <= 0xAF) return 0;
  }
  if (length == 3 && first == 0xEF && byte_at(text, 1) == 0xBB && byte_at(text, 2) == 0xBF) return 0;  // U+FEFF
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t eight = 0;  // most texts are ASCII
    while (text.size() >= sizeof(eight)) {
      std::memcpy(&eight, text.data(), sizeof(eight));
      if ((eight & 0x8080808080808080U) != 0) break;
      text.remove_prefix(sizeof(eight));
    }
    if (text.empty()) return true;
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    result += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string visible_text(std::string_view text, bool keep_lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = visible_length(text), taken = std::max<size_t>(length, 1);
    if (length > 0 || (keep_lines && text[0] == '\n')) {
      result += text.substr(0, taken);
    } else {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", byte_at(text, 0));
    }
    text.remove_prefix(taken);
  }
  return result;
}

std::string_view cut_at_character(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  // a character has at most three bytes that continue it; what is not UTF-8 is cut where it is
  for (size_t end = most; end > 0 && most - end < 4; --end) {
    if ((byte_at(text, end) & 0xC0) != 0x80) return text.substr(0, end);
  }
  return text.substr(0, most);
}

}  // namespace tonnx
