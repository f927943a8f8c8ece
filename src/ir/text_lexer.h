// text_lexer.h - the text form of graphs as a stream of tokens.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tonnx::text {

struct Token {
  enum class Kind : uint8_t {
    End,
    Word,    // conv, com.microsoft.Gelu, _
    Value,   // %x, %"odd name"
    String,  // "text"
    Number,  // 12, 1.5, 1e-05, 1e-05f, 0x7f; the sign is a mark of its own
    Mark,    // one of ()[]{}<>,=:*+-/@.? or ::
  };
  Kind kind = Kind::End;
  std::string_view source;  // as it stands in the text
  std::string text;         // of names and strings: without quotes and escapes; else the same as the source
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& token() const { return token_; }
  void advance();
  /// How much of the text is left, the token included.
  size_t left() const { return text_.size() - at_ + token_.source.size(); }

  /// Throws InvalidModel with line and column of the token.
  [[noreturn]] void fail(const Token& at, std::string_view what) const { fail_at(at.source.data(), what); }
  [[noreturn]] void fail(std::string_view what) const { fail(token_, what); }

 private:
  [[noreturn]] void fail_at(const char* at, std::string_view what) const;
  void skip_blanks();
  std::string read_string();
  size_t number_length(size_t start) const;
  size_t word_length(size_t start) const;
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  std::string_view text_;
  size_t at_ = 0;  // behind the token
  Token token_;
};

/// How many characters at the front can stand behind `%` without quotes.
size_t plain_name_length(std::string_view text);

}  // namespace tonnx::text
