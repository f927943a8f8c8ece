// text_parts.h - parses the parts of the text form that know no graph: numbers, types, sizes, constants.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/attribute.h"
#include "ir/text_lexer.h"

namespace tonnx::text {

inline constexpr int kMaxNesting = 128;     // of graphs, types and lists; deeper ones are refused
inline constexpr int kMaxDimNesting = 256;  // of expressions

class PartParser {
 public:
  explicit PartParser(std::string_view source) : lexer_(source) {}

 protected:
  using Kind = Token::Kind;

  // Tokens. take_... says whether the token was there, or gives its text and fails where it is another one.
  const Token& token() const { return lexer_.token(); }
  bool at_mark(std::string_view mark) const { return token().kind == Kind::Mark && token().source == mark; }
  bool at_word(std::string_view word) const { return token().kind == Kind::Word && token().source == word; }
  bool take_mark(std::string_view mark);
  bool take_word(std::string_view word);
  void expect_mark(std::string_view mark);
  std::string take(Kind kind, std::string_view what);
  std::string take_string() { return take(Kind::String, "a text in quotes"); }
  std::string take_word_or_string(std::string_view what);
  [[noreturn]] void fail_expected(std::string_view what) const;

  /// Parses items up to `end`, with commas between them.
  template <class Item>
  void parse_items(std::string_view end, Item&& item) {
    if (take_mark(end)) return;
    do {
      item();
    } while (take_mark(","));
    expect_mark(end);
  }

  /// Runs what may go down into itself again.
  template <class Body>
  auto nested(int limit, Body&& body) {
    if (depth_ >= limit) lexer_.fail(fmt::format("nested more than {} deep", limit));
    ++depth_;
    auto result = body();
    --depth_;
    return result;
  }

  /// Runs arithmetic whose errors are to say where in the text they are.
  template <class Body>
  auto located(const Token& at, Body&& body) const {
    try {
      return body();
    } catch (const Error& e) {
      lexer_.fail(at, e.text());
    }
  }

  bool at_integer() const;
  int64_t take_integer(bool negative);
  std::vector<int64_t> parse_sizes();
  int64_t parse_integer() { return take_integer(take_mark("-")); }
  template <class Float>
  Float take_float();

  DType parse_dtype();
  Type parse_type();
  Shape parse_shape();
  Dim parse_dim();

  /// Behind the element type: sizes, elements, and what is said about them.
  std::shared_ptr<Tensor> parse_tensor(DType dtype);
  /// Behind the word `sparse`.
  SparseTensorPtr parse_sparse();
  /// A line of documentation or metadata, where there is one.
  bool parse_note(std::string& doc, Metadata& metadata);

  Lexer lexer_;

 private:
  uint64_t take_magnitude();
  uint64_t parse_element_bits(DType dtype);
  Type parse_number_type(const std::string& name);
  Dim parse_dim_product();
  Dim parse_dim_factor();
  Dim parse_dim_function(const Token& at, const std::string& name);
  void parse_elements(Tensor& tensor, int64_t count);

  int depth_ = 0;
};

}  // namespace tonnx::text
