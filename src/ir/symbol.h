// symbol.h - interned names of operators and domains: cheap to copy and to compare.
#pragma once
#include <string>
#include <string_view>

namespace tonnx {

class Symbol {
 public:
  Symbol();
  Symbol(std::string_view text);  // NOLINT: a name is a symbol
  Symbol(const char* text) : Symbol(std::string_view(text)) {}
  Symbol(const std::string& text) : Symbol(std::string_view(text)) {}

  std::string_view view() const { return *text_; }
  const std::string& str() const { return *text_; }
  bool empty() const { return text_->empty(); }
  friend bool operator==(Symbol a, Symbol b) { return a.text_ == b.text_; }
  /// Quicker than to look for the symbol of the text.
  friend bool operator==(Symbol a, const char* text) { return a.view() == text; }
  friend bool operator==(Symbol a, std::string_view text) { return a.view() == text; }
  friend bool operator==(Symbol a, const std::string& text) { return a.str() == text; }

 private:
  const std::string* text_;
};

}  // namespace tonnx
