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
  consteval Signature(const char* text) : text_(text) {  // NOLINT: a text is a signature
    int depth = 0;
    bool quoted = false;
    size_t arrow = 0;
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '"') quoted = !quoted;
      if (quoted) continue;
      depth += text_[i] == '(' || text_[i] == '[';
      depth -= text_[i] == ')' || text_[i] == ']';
      if (depth < 0) throw "unbalanced signature";
      if (depth == 0 && text_.substr(i, 4) == " -> ") arrow = i;
      if (text_.substr(i, 2) == ",," || text_.substr(i, 3) == ", )" || text_.substr(i, 2) == "( ")
        throw "an empty parameter";
    }
    if (depth != 0 || quoted) throw "a signature needs balanced (...) and quotes";
    if (arrow == 0 || text_[arrow - 1] != ')') throw "a signature needs ') -> '";
    if (text_.find('(') == 0 || text_.find('(') > arrow) throw "a signature needs a name and '('";
    if (text_.find(' ') < text_.find('(')) throw "a space in the name of an operator";
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
