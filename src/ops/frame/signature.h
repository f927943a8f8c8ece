// signature.h - one-line signatures of operators: checked while compiling, parsed once when first needed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/attribute.h"

namespace tonnx {

/// `Conv(T X, T W, T? B, *, str auto_pad="NOTSET", ints? pads) -> T Y` in ONNX: inputs, then after `*` attributes
/// (`T?` an optional input, `T...` a variadic one; an attribute with neither default nor `?` is required), and
/// PyTorch's own schema strings in aten. A typo is a build error.
class Signature {
 public:
  /// Character by character, without the functions of std::string_view: the compiler runs this for every row, and it
  /// takes several times as long with them.
  consteval Signature(const char* text) {  // NOLINT: a text is a signature
    int depth = 0, open = 0, arrow = 0, i = 0;
    bool quoted = false;
    for (; text[i] != '\0'; ++i) {
      const char c = text[i];
      if (c > ']' || (c >= '.' && c <= 'Z')) continue;  // letters and digits, most of all
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      const char next = text[i + 1];
      if (c == '(' || c == '[') {
        ++depth;
        if (c == '(' && open == 0) open = i;
        if (c == '(' && next == ' ') throw "an empty parameter";
      } else if (c == ')' || c == ']') {
        if (--depth < 0) throw "unbalanced signature";
      } else if (c == ',' && (next == ',' || (next == ' ' && text[i + 2] == ')'))) {
        throw "an empty parameter";
      } else if (c == ' ' && depth == 0) {
        if (open == 0) throw "a signature needs a name without spaces and '('";
        if (next == '-' && text[i + 2] == '>' && text[i + 3] == ' ') arrow = i;
      }
    }
    if (depth != 0 || quoted) throw "a signature needs balanced (...) and quotes";
    if (arrow == 0 || text[arrow - 1] != ')') throw "a signature needs ') -> '";
    text_ = {text, static_cast<size_t>(i)};
  }
  constexpr std::string_view text() const { return text_; }
  /// With domain and overload, as written.
  constexpr std::string_view name() const { return text_.substr(0, text_.find('(')); }

 private:
  std::string_view text_;
};

struct Param {
  std::string type;  // without the `?`, `...` and array size
  std::string name;
  bool optional = false;
  bool variadic = false;
  bool keyword_only = false;
  bool has_default = false;
  bool is_list = false;     // `int[2]`, `Tensor[]`
  bool takes_one = false;   // `int[1]`: a number stands for a list of one
  size_t list_size = 0;     // `int[2]`: 2; 0 where any length will do
  bool has_gaps = false;    // `Tensor?[]`: items may be None
  AttrValue default_value;  // None is a default too
};

struct ParsedSignature {
  std::string domain;  // of ONNX operators; the namespace of aten ones
  std::string name;
  std::string overload;
  std::vector<Param> inputs;      // all arguments in aten
  std::vector<Param> attributes;  // ONNX only
  std::vector<Param> outputs;

  int find_input(std::string_view wanted) const;      // -1: none
  int find_attribute(std::string_view wanted) const;  // -1: none
};

/// Whether an argument is what the signature has as its default; floats as far as 32 bits tell.
bool equals_default(const AttrValue& value, const AttrValue& otherwise, bool is_list);

ParsedSignature parse_onnx_signature(std::string_view text);
ParsedSignature parse_aten_signature(std::string_view text);

}  // namespace tonnx
