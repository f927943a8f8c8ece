// tokens.cpp - cuts the code of an archive into words.
#include "formats/torchscript/source/tokens.h"

#include <algorithm>

#include "base/budget.h"
#include "base/error.h"

namespace tonnx::torchscript {
namespace {

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      begin_line();
      while (at_ < source_.size() && source_[at_] != '\n') word();
      if (at_ < source_.size()) ++at_;
      if (depth_ == 0 && !tokens_.empty() && tokens_.back().kind != Token::Kind::NewLine &&
          tokens_.back().kind != Token::Kind::Indent && tokens_.back().kind != Token::Kind::Dedent)
        add(Token::Kind::NewLine, {});
      ++line_;
    }
    if (depth_ != 0) fail_here("it ends inside of brackets");
    for (; !indents_.empty(); indents_.pop_back()) add(Token::Kind::Dedent, {});
    add(Token::Kind::End, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(const char* why) const { fail(ErrorKind::BadFile, "line {}: {}", line_, why); }

  void add(Token::Kind kind, std::string_view text) {
    budget().take(Resource::Memory, sizeof(Token));
    tokens_.push_back({kind, text, line_});
  }

  void begin_line() {
    size_t end = at_;
    while (end < source_.size() && source_[end] == ' ') ++end;
    const bool is_empty = end >= source_.size() || source_[end] == '\n' || source_[end] == '#' || source_[end] == '\r';
    const size_t indent = end - at_;
    at_ = end;
    if (is_empty || depth_ > 0) return;
    const size_t now = indents_.empty() ? 0 : indents_.back();
    if (indent > now) {
      constexpr size_t kMostBlocks = 200;
      if (indents_.size() >= kMostBlocks) fail_here("its blocks nest too deep");
      indents_.push_back(indent);
      return add(Token::Kind::Indent, {});
    }
    while (!indents_.empty() && indent < indents_.back()) {
      indents_.pop_back();
      add(Token::Kind::Dedent, {});
    }
    if (indent != (indents_.empty() ? 0 : indents_.back())) fail_here("a line is indented as none before it");
  }

  void word() {
    const char c = source_[at_];
    const size_t start = at_;
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (starts_name(c)) {
      while (at_ < source_.size() && (starts_name(source_[at_]) || is_digit(source_[at_]))) ++at_;
      add(Token::Kind::Name, source_.substr(start, at_ - start));
    } else if (is_digit(c) || (c == '.' && at_ + 1 < source_.size() && is_digit(source_[at_ + 1]))) {
      number();
    } else if (c == '"' || c == '\'') {
      text(c);
    } else {
      sign();
    }
  }

  void number() {
    const size_t start = at_;
    bool is_float = false;
    while (at_ < source_.size()) {
      const char c = source_[at_];
      const bool is_exponent = c == 'e' || c == 'E';
      is_float |= c == '.' || is_exponent;
      if (!is_digit(c) && c != '.' && !is_exponent) break;
      ++at_;
      if (is_exponent && at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    }
    if (at_ < source_.size() && source_[at_] == 'j')
      fail_unsupported("line {}: the code has a complex number, which is not read; a tensor can hold it", line_);
    add(is_float ? Token::Kind::Float : Token::Kind::Int, source_.substr(start, at_ - start));
  }

  void text(char quote) {
    const size_t start = ++at_;
    while (at_ < source_.size() && source_[at_] != quote && source_[at_] != '\n') at_ += source_[at_] == '\\' ? 2 : 1;
    if (at_ >= source_.size() || source_[at_] != quote) fail_here("a text does not end");
    add(Token::Kind::Text, source_.substr(start, at_ - start));
    ++at_;
  }

  void sign() {
    for (const std::string_view two : {"->", "==", "!=", "<=", ">=", "//", "**", "<<", ">>", "+=", "-=", "*=", "/="}) {
      if (source_.substr(at_, 2) != two) continue;
      add(Token::Kind::Sign, two);
      at_ += 2;
      return;
    }
    const char c = source_[at_];
    if (std::string_view("()[]{}:,.=+-*/%<>@&|^~;").find(c) == std::string_view::npos)
      fail_here("there is a sign that code does not have");
    constexpr int kMostBrackets = 400;
    if (c == '(' || c == '[' || c == '{') {
      if (++depth_ > kMostBrackets) fail_here("its brackets nest too deep");
    }
    if ((c == ')' || c == ']' || c == '}') && --depth_ < 0) fail_here("a bracket is closed that is not open");
    add(Token::Kind::Sign, source_.substr(at_, 1));
    ++at_;
  }

  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  int depth_ = 0;
  std::vector<size_t> indents_;
  std::vector<Token> tokens_;
};

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

std::string unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char c = text[++i];
    constexpr std::string_view kNames = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t at = kNames.find(c); at != std::string_view::npos) {
      result += kMeanings[at];
    } else if (c == 'x' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      result += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else if (c >= '0' && c <= '7') {  // up to three digits, as torch.jit prints them
      int value = 0;
      size_t end = i;
      for (; end < text.size() && end < i + 3 && text[end] >= '0' && text[end] <= '7'; ++end)
        value = value * 8 + (text[end] - '0');
      result += static_cast<char>(value);
      i = end - 1;
    } else {
      result += '\\';
      result += c;
    }
  }
  return result;
}

}  // namespace tonnx::torchscript
