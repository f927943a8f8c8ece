// text_lexer.cpp - cuts the text form of graphs into tokens.
#include "ir/text_lexer.h"

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"

namespace tonnx::text {
namespace {

constexpr std::string_view kMarks = "()[]{}<>,=:*+-/@.?";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_name_char(char c) { return is_word_char(c) || c == '.' || c == '/' || c == '-'; }

int hex_value(char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

}  // namespace

size_t plain_name_length(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if (is_name_char(text[i])) {
      ++i;
    } else if (text.substr(i, 2) == "::" && i + 2 < text.size() && is_name_char(text[i + 2])) {
      i += 3;
    } else if (text[i] == ':' && i + 1 < text.size() && is_digit(text[i + 1])) {  // x:0, and not x: float32
      i += 2;
    } else {
      break;
    }
  }
  return i;
}

void Lexer::fail_at(const char* at, std::string_view what) const {
  const std::string_view before = text_.substr(0, static_cast<size_t>(at - text_.data()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  fail_invalid("line {}, column {}: {}", line, column, what);
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    if (text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

/// Reads from behind the opening quote to behind the closing one.
std::string Lexer::read_string() {
  const size_t start = at_ - 1;
  std::string result;
  while (true) {
    const size_t end = text_.find_first_of("\"\\\n", at_);
    if (end == std::string_view::npos || text_[end] == '\n')
      fail_at(text_.data() + start, "a string without its closing quote");
    result += text_.substr(at_, end - at_);
    at_ = end + 1;
    if (text_[end] == '"') return result;
    const char escape = at(at_++);
    switch (escape) {
      case 'n': result += '\n'; break;
      case 't': result += '\t'; break;
      case '"':
      case '\\': result += escape; break;
      case 'x':
        if (is_hex_digit(at(at_)) && is_hex_digit(at(at_ + 1))) {
          result += static_cast<char>(hex_value(text_[at_]) * 16 + hex_value(text_[at_ + 1]));
          at_ += 2;
          break;
        }
        [[fallthrough]];
      default: fail_at(text_.data() + end, "an escape that is none of \\\" \\\\ \\n \\t \\xNN");
    }
  }
}

size_t Lexer::word_length(size_t start) const {
  size_t i = start;
  while (is_word_char(at(i)) || (at(i) == '.' && is_word_char(at(i + 1)))) ++i;
  return i - start;
}

size_t Lexer::number_length(size_t start) const {
  size_t i = start;
  if (at(i) == '0' && at(i + 1) == 'x') {
    i += 2;
    while (is_hex_digit(at(i))) ++i;
    return i - start;
  }
  while (is_digit(at(i))) ++i;
  if (at(i) == '.' && is_digit(at(i + 1))) {
    ++i;
    while (is_digit(at(i))) ++i;
  }
  const size_t digits = i + (at(i + 1) == '+' || at(i + 1) == '-' ? 2 : 1);
  if (at(i) == 'e' && is_digit(at(digits))) {
    i = digits;
    while (is_digit(at(i))) ++i;
  }
  if (at(i) == 'f') ++i;
  return i - start;
}

void Lexer::advance() {
  skip_blanks();
  const size_t start = at_;
  token_.text.clear();
  const auto take = [&](Token::Kind kind, size_t length) {
    at_ = start + length;
    token_.kind = kind;
    token_.text = text_.substr(start, length);
  };
  const char c = at(start);
  if (start == text_.size()) {
    take(Token::Kind::End, 0);
  } else if (is_digit(c)) {
    take(Token::Kind::Number, number_length(start));
    if (is_word_char(at(at_))) fail_at(text_.data() + start, "a number that ends in letters");
  } else if (is_word_char(c)) {
    take(Token::Kind::Word, word_length(start));
  } else if (c == '"') {
    ++at_;
    token_.kind = Token::Kind::String;
    token_.text = read_string();
  } else if (c == '%' && at(start + 1) == '"') {
    at_ += 2;
    token_.kind = Token::Kind::Value;
    token_.text = read_string();
  } else if (c == '%') {
    const size_t length = plain_name_length(text_.substr(start + 1));
    if (length == 0) fail_at(text_.data() + start, "a name is missing after '%'");
    take(Token::Kind::Value, length + 1);
    token_.text.erase(0, 1);
  } else if (kMarks.find(c) != std::string_view::npos) {
    take(Token::Kind::Mark, c == ':' && at(start + 1) == ':' ? 2 : 1);
  } else {
    fail_at(text_.data() + start, "a character that cannot stand here");
  }
  token_.source = text_.substr(start, at_ - start);
}

}  // namespace tonnx::text
