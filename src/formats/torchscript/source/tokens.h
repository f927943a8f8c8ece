// tokens.h - the words of a TorchScript archive's code, with the blocks that its indentation makes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx::torchscript {

struct Token {
  enum class Kind : uint8_t { Name, Int, Float, Text, Sign, NewLine, Indent, Dedent, End };
  Kind kind = Kind::End;
  std::string_view text;  // as it stands in the source; of texts without their quotes
  uint32_t line = 0;

  bool is(std::string_view sign) const { return (kind == Kind::Sign || kind == Kind::Name) && text == sign; }
};

/// Throws BadFile with the line where the source is none.
std::vector<Token> tokens_of(std::string_view source);

/// What a text between quotes means: its escapes replaced.
std::string unescaped(std::string_view text);

}  // namespace tonnx::torchscript
