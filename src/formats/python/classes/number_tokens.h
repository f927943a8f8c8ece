// number_tokens.h - the numbers in a piece of code.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tonnx::python {

/// Code as texts with numbers between them: one text more than numbers.
struct NumberedText {
  std::vector<std::string> texts;
  std::vector<std::string> numbers;
};

/// Numbers inside names and strings are no numbers; True, False and the types of tensors are.
NumberedText split_numbers(std::string_view code);

/// The words before number i: `stride` of `stride=2` and of `self.stride = 2`, or else the function that it is an
/// argument of, and which one: `nn.Linear` and 1.
struct NumberRole {
  std::string keyword;
  std::string function;
  int position = 0;
};
NumberRole role_of_number(const NumberedText& text, size_t number);

}  // namespace tonnx::python
